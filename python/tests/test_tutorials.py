import pathlib
import runpy

import matplotlib
import pytest

matplotlib.use("Agg")

TUTORIALS = sorted((pathlib.Path(__file__).parents[1] / "tutorials").glob("*.py"))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_runs(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out
