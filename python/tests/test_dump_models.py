"""scripts/dump-models, which compares the models of two builds."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from reference.model_file import ModelFile

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "dump-models"
NAME = "gfm-matrix-number-free-kalman-double"


def dump_models(*arguments):
    """Run the script; return the exit code and the output."""
    environment = dict(os.environ, PYTHON=sys.executable)
    result = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=environment)
    assert not result.stderr
    return result.returncode, result.stdout


@pytest.fixture
def folders(tmp_path):
    """Return two folders with the same models."""
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        assert dump_models("run", os.environ["DYAD_COMMAND"], folder, "--only", NAME)[0] == 0
    return folders


def change(model, **values):
    """Add numbers to tensors of a model file."""
    file = ModelFile.read(model)
    for name, value in values.items():
        file.tensors[name] = file.tensors[name] + value
    file.write(model)


def test_compare_equal_folders_reports_no_difference(folders):
    assert dump_models("compare", *folders)[0] == 0
    assert (folders[0] / "listing.txt").read_text() == (folders[1] / "listing.txt").read_text()


def test_compare_lists_changed_tensors(folders):
    change(folders[1] / f"{NAME}.dyad", weights=1e-8)
    code, output = dump_models("compare", *folders)
    assert code == 1 and "weights" in output and "spectrum" not in output
    assert dump_models("compare", *folders, "--tolerance", "1e-10")[0] == 1
    assert dump_models("compare", *folders, "--tolerance", "1e-3")[0] == 0
    assert dump_models("compare", *folders, "--predictions-only")[0] == 0


def test_compare_with_tolerance_ignores_factor_signs(folders):
    file = ModelFile.read(folders[1] / f"{NAME}.dyad")
    file.tensors["factors"][:, 0] *= -1
    file.write(folders[1] / f"{NAME}.dyad")
    assert dump_models("compare", *folders)[0] == 1
    assert dump_models("compare", *folders, "--tolerance", "1e-12")[0] == 0


def test_compare_lists_changed_predictions_and_missing_models(folders):
    predictions = folders[1] / f"{NAME}.predictions.txt"
    np.savetxt(predictions, np.loadtxt(predictions, delimiter=",") + 1e-6, delimiter=",", fmt="%.17g")
    assert dump_models("compare", *folders, "--tolerance", "1e-10", "--predictions-only")[0] == 1
    assert dump_models("compare", *folders, "--tolerance", "1e-4", "--predictions-only")[0] == 0
    (folders[1] / f"{NAME}.dyad").unlink()
    assert dump_models("compare", *folders, "--tolerance", "1e-4")[0] == 1


def test_show_prints_every_tensor(folders):
    model = folders[0] / f"{NAME}.dyad"
    _, output = dump_models("show", model)
    file = ModelFile.read(model)
    assert all(f" {name}  " in output for name in file.tensors)
    change(model, intercept=1.0)
    _, changed = dump_models("show", model)
    differing = [line for line, other in zip(output.splitlines(), changed.splitlines()) if line != other]
    assert len(differing) == 1 and " intercept  " in differing[0]
