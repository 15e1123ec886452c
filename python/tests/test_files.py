"""Model files of the estimators and of the dyad command."""

import json
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file
from sklearn.datasets import dump_svmlight_file

from conftest import make_ratings
from dyad import DataError, FactorizationClassifier, FactorizationRegressor, load

DYAD = os.environ.get("DYAD_COMMAND", "dyad")


def dyad(*arguments):
    return subprocess.run([DYAD, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def predicted(model, data):
    return np.array([float(line) for line in dyad("predict", "-m", model, data).split()])


def test_command_predictions_equal_estimator_for_arrays(tmp_path, rows):
    X, y = rows
    model = FactorizationRegressor(rank=3).fit(X, y)
    model.save(tmp_path / "model.dyad")
    np.save(tmp_path / "rows.npy", X)
    np.testing.assert_allclose(predicted(tmp_path / "model.dyad", tmp_path / "rows.npy"), model.predict(X), rtol=1e-12)


def test_command_predictions_equal_estimator_for_sparse_rows(tmp_path):
    X, y = make_ratings(2000)
    model = FactorizationRegressor(rank=3).fit(X, y)
    model.save(tmp_path / "model.dyad")
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=True)
    np.testing.assert_allclose(predicted(tmp_path / "model.dyad", tmp_path / "rows.svm"), model.predict(X), rtol=1e-12)


def test_command_predictions_equal_estimator_for_tables(tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"color": random.choice(["red", "blue"], size=300), "size": random.normal(size=300)})
    y = np.where(X["color"] == "red", 1, -1) * X["size"]
    model = FactorizationRegressor(rank=2).fit(X, y)
    model.save(tmp_path / "model.dyad")
    X.to_csv(tmp_path / "rows.csv", index=False)
    np.testing.assert_allclose(predicted(tmp_path / "model.dyad", tmp_path / "rows.csv"), model.predict(X), rtol=1e-12)


def test_load_reads_models_of_command(tmp_path, rows):
    X, y = rows
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "targets.npy", y)
    dyad("train", tmp_path / "rows.npy", "--target-file", tmp_path / "targets.npy", "-m", tmp_path / "m", "--quiet")
    model = load(tmp_path / "m")
    assert isinstance(model, FactorizationRegressor)
    np.testing.assert_allclose(model.predict(X), predicted(tmp_path / "m", tmp_path / "rows.npy"), rtol=1e-12)
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()

    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": np.where(y > 3, "high", "low")})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    dyad("train", tmp_path / "rows.csv", "--target", "y", "-m", tmp_path / "c", "--quiet")
    classifier = load(tmp_path / "c")
    assert isinstance(classifier, FactorizationClassifier)
    assert list(classifier.classes_) == ["high", "low"]
    np.testing.assert_allclose(classifier.predict_proba(frame[["a", "b"]])[:, 1],
                               predicted(tmp_path / "c", tmp_path / "rows.csv"), rtol=1e-12)


def test_safetensors_reads_parameters(tmp_path, rows):
    model = FactorizationRegressor(rank=3).fit(*rows)
    model.save(tmp_path / "model.safetensors")
    arrays = load_file(tmp_path / "model.safetensors")
    for name in ("weights", "factors", "spectrum", "squares"):
        np.testing.assert_array_equal(arrays[name], model.parameters()[name])


def test_load_rejects_other_files(tmp_path):
    (tmp_path / "text").write_text("not a model")
    with pytest.raises(DataError):
        load(tmp_path / "text")
    with pytest.raises(DataError, match=tmp_path.name):
        load(tmp_path)


def test_save_to_missing_folder_raises_os_error(tmp_path, rows):
    model = FactorizationRegressor(rank=2).fit(*rows)
    with pytest.raises(OSError):
        model.save(tmp_path / "missing" / "model.dyad")


def test_interactions_equal_command_inspect(tmp_path, rows):
    model = FactorizationRegressor(rank=3).fit(*rows)
    model.save(tmp_path / "model.dyad")
    listed = json.loads(dyad("inspect", tmp_path / "model.dyad", "--top", 5, "--json"))["pairs"]
    assert [pair["coefficient"] for pair in listed] == list(model.interactions(top=5)["coefficient"])
