"""Saving, loading, pickling and copying preserve estimators."""

import copy
import decimal
import os
import pickle
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.base import clone

import dyad
from conftest import make_rows, make_ratings
from dyad import (
    DataError,
    FactorizationClassifier,
    FactorizationRegressor,
    InductiveMatrixCompletion,
    Learner,
    MatrixSensing,
    PhaseRetrieval,
    load,
)

DYAD = os.environ.get("DYAD_COMMAND", "dyad")


def save_and_load(estimator, path):
    estimator.save(path)
    return load(path)


LABELS = {
    "bool": np.array([False, True]),
    "digit strings": np.array(["0", "1"]),
    "digit strings with zeros": np.array(["01", "02", "10"]),
    "int": np.array([-3, 0, 7]),
    "int8": np.array([1, 2], np.int8),
    "float": np.array([2.0, 7.0]),
    "float32": np.array([1, 2, 3], np.float32),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "pandas strings": pd.array(["a", "b"], dtype="str"),
    "pandas integers": pd.array([1, 2, 3], dtype="Int64"),
    "eleven": np.arange(11),
    "one": np.array(["only"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_load_preserves_label_types(name, tmp_path):
    classes = LABELS[name]
    X, _ = make_rows(66)
    y = classes[np.arange(66) % len(classes)]
    model = FactorizationClassifier(rank=1, solver="kalman").fit(X, y)
    restored = save_and_load(model, tmp_path / "m")
    assert restored.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(restored.classes_, model.classes_)
    assert [type(value) for value in restored.classes_] == [type(value) for value in model.classes_]
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    assert restored.score(X, y) == model.score(X, y)
    if len(classes) > 1:
        again = restored.partial_fit(X, y, classes=classes)
        np.testing.assert_array_equal(again.predict_proba(X), model.partial_fit(X, y).predict_proba(X))


def test_load_preserves_parameters(tmp_path, rows):
    X, y = rows
    model = FactorizationRegressor(
        rank=3, solver="kalman", diagonal="tied", target_range=(-50, 50.5), half_life=1000, max_bytes=1e6, precision="single",
        random_state=7, n_jobs=1, warm_start=True, verbose=0,
    ).fit(X, y)
    restored = save_and_load(model, tmp_path / "m")
    assert restored.get_params() == model.get_params()
    np.testing.assert_array_equal(restored.fit(X, y).predict(X), model.fit(X, y).predict(X))  # with warm_start
    assert clone(restored).get_params() == model.get_params()


class Extended(FactorizationRegressor):
    """Subclass of a user with another parameter."""

    def __init__(self, rank=2, *, extra="x", solver="auto"):
        super().__init__(rank, solver=solver)
        self.extra = extra


def test_load_subclass_returns_base_class(tmp_path, rows):
    restored = save_and_load(Extended(3, solver="kalman").fit(*rows), tmp_path / "m")
    assert type(restored) is FactorizationRegressor
    assert (restored.rank, restored.solver) == (3, "kalman")


def test_save_warns_about_omitted_parameters(tmp_path, rows):
    model = FactorizationRegressor(rank=1, callback=lambda *_: None, random_state=np.random.RandomState(1)).fit(*rows)
    with pytest.warns(UserWarning, match="callback, random_state|random_state, callback"):
        model.save(tmp_path / "m")
    assert load(tmp_path / "m").get_params()["callback"] is None


def test_load_preserves_column_names(tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"a": random.normal(size=50), "b": random.choice(["x", "y"], 50)})
    y = X["a"] * np.where(X["b"] == "x", 1, -1)
    restored = save_and_load(FactorizationRegressor(rank=2).fit(X, y), tmp_path / "m")
    assert list(restored.feature_names_in_) == ["a", "b"]
    unnamed = X.rename(columns={"a": 0, "b": 1})
    restored = save_and_load(FactorizationRegressor(rank=2).fit(unnamed, y), tmp_path / "m")
    assert not hasattr(restored, "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        restored.predict(unnamed)


def test_command_reads_models_of_all_classes_and_of_one(tmp_path, rows):
    X, _ = rows
    model = FactorizationClassifier(rank=1, solver="kalman").fit(X, np.arange(300) % 3)
    model.save(tmp_path / "all")
    np.save(tmp_path / "x.npy", X)

    def predicted(file):
        command = [DYAD, "predict", "-m", tmp_path / file, tmp_path / "x.npy", "--quiet"]
        return subprocess.run(command, capture_output=True, text=True)

    probabilities = np.loadtxt(predicted("all").stdout.splitlines(), delimiter=",")
    np.testing.assert_allclose(probabilities, model.predict_proba(X), rtol=1e-12)
    model.save(tmp_path / "one", class_index=2)
    expected = model._predictors[2].predict(dyad._core.Rows.dense(X))
    np.testing.assert_allclose(np.array(predicted("one").stdout.split(), float), expected, rtol=1e-12)
    with safe_open(tmp_path / "all", "numpy") as file:
        assert file.metadata()["format"] == "dyad-container"
        assert len(list(file.keys())) == 3
    for wrong in (3, -1, 1.0, True):
        with pytest.raises(ValueError, match="class_index"):
            model.save(tmp_path / "one", class_index=wrong)


def test_command_resume_keeps_annotations(tmp_path, rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    y = np.where(y > 3, "1", "0")
    FactorizationClassifier(rank=2, solver="kalman", half_life=5000).fit(frame, y).save(tmp_path / "m")
    frame.assign(target=y).to_csv(tmp_path / "rows.csv", index=False)
    command = [DYAD, "train", tmp_path / "rows.csv", "-m", tmp_path / "m", "--resume", "--quiet"]
    subprocess.run(command, check=True, capture_output=True)
    model = load(tmp_path / "m")
    assert list(model.classes_) == ["0", "1"]
    assert (model.solver, model.half_life) == ("kalman", 5000)


def make_measurements():
    random = np.random.default_rng(0)
    A = random.normal(size=(60, 5))
    return A, random


def test_load_preserves_measurement_estimators(tmp_path):
    A, random = make_measurements()
    x = random.normal(size=5)
    for model in (MatrixSensing(rank=2, random_state=3, n_jobs=1), PhaseRetrieval(random_state=4)):
        model.fit(A, (A @ x) ** 2)
        restored = save_and_load(model, tmp_path / "m")
        assert type(restored) is type(model)
        assert restored.get_params() == model.get_params()
        np.testing.assert_array_equal(restored.predict(A), model.predict(A))
        np.testing.assert_array_equal(restored.eigenvectors_, model.eigenvectors_)
        assert restored.n_features_in_ == 5
        np.save(tmp_path / "a.npy", A)
        command = [DYAD, "predict", "-m", tmp_path / "m", tmp_path / "a.npy", "--quiet"]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        np.testing.assert_allclose(np.array(output.split(), float), model.predict(A), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_load_preserves_matrix_completion(form, tmp_path):
    _, random = make_measurements()
    X, Z = random.normal(size=(20, 4)), random.normal(size=(15, 3))
    i, j = random.integers(20, size=150), random.integers(15, size=150)
    values = (X @ np.outer(np.arange(4), np.arange(3)) @ Z.T)[i, j]
    model = InductiveMatrixCompletion(rank=2, random_state=1).fit(form(X), form(Z), i, j, values)
    restored = save_and_load(model, tmp_path / "m")
    assert restored.get_params() == model.get_params()
    np.testing.assert_array_equal(restored.predict(form(X), form(Z)), model.predict(form(X), form(Z)))


def learn_stream(learner, first, last):
    """Learn the rows [first, last) of a stream; return the learner."""
    random = np.random.default_rng(5)
    rows = [(random.choice(["a", "b", "c"]), random.integers(4), random.normal()) for _ in range(last)]
    for name, number, value in rows[first:]:
        y = {"a": 1, "b": 0, "c": 2}[name] * value + number
        x = {"name": name, "number": decimal.Decimal(int(number)), 7: value, "flag": bool(number), "none": None}
        if learner.task == "classification":
            y = "high" if y > 1 else "low"
        learner.learn_one(x, y)
    return learner


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("before", [0, 20, 300])
def test_learner_copies_continue_identically(task, before, tmp_path):
    learner = learn_stream(Learner(task, rank=2, half_life=500.0, random_state=3), 0, before)
    copies = [
        save_and_load(learner, tmp_path / "learner"),
        pickle.loads(pickle.dumps(learner)),
        copy.copy(learner),
        copy.deepcopy(learner),
    ]
    learn_stream(learner, before, 400)
    x = {"name": "b", 7: 0.5, "flag": True, "none": None}
    for found in copies:
        assert found.rows == before
        assert (found.task, found.rank, found.half_life, found.random_state) == (task, 2, 500.0, 3)
        learn_stream(found, before, 400)
        assert found.predict_std_one(x) == learner.predict_std_one(x)
        assert found.predict_one(x) == learner.predict_one(x)
        assert found.noise == learner.noise


def test_learner_save_rejects_unsupported_keys(tmp_path):
    learner = Learner(rank=1).learn_one({"a": frozenset([1])}, 1.0)
    with pytest.raises(TypeError, match="frozenset"):
        learner.save(tmp_path / "learner")
    assert pickle.loads(pickle.dumps(learner)).rows == 1


def test_load_invalid_container_raises_data_error(tmp_path, rows):
    X, _ = rows
    FactorizationClassifier(rank=1, solver="kalman").fit(X, np.arange(300) % 3).save(tmp_path / "m")
    whole = (tmp_path / "m").read_bytes()
    for length in range(0, len(whole), 997):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(DataError):
            load(tmp_path / "cut")
    annotations, parts = dyad._core.unpack_container(whole, "m")
    for changes in (
        {"estimator": "Unknown"},
        {"parameters": "[]"},
        {"parameters": "{"},
        {"parameters": '{"wrong": 1}'},
        {"attributes": "{}"},
        {"attributes": '{"has_feature_names": false, "classes": {"dtype": "<i8", "values": [1, 2]}}'},
        {"estimator": "Learner"},
        {"estimator": "MatrixSensing"},
    ):
        (tmp_path / "m").write_bytes(dyad._core.pack_container({**annotations, **changes}, parts))
        with pytest.raises(DataError):
            load(tmp_path / "m")
    (tmp_path / "m").write_bytes(dyad._core.pack_container(annotations, []))
    with pytest.raises(DataError):
        load(tmp_path / "m")


def test_missing_files_raise_file_not_found_error(tmp_path, rows):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    for files in ("missing.csv", "missing.parquet", ["missing.svm"]):
        with pytest.raises(FileNotFoundError):
            dyad.stream(files, target=None if isinstance(files, list) else "y")
    np.save(tmp_path / "x.npy", rows[0])
    with pytest.raises(FileNotFoundError):
        dyad.stream(tmp_path / "x.npy", target_files=tmp_path / "missing.npy")
    np.save(tmp_path / "y.npy", rows[1])
    blocks = dyad.stream(tmp_path / "x.npy", target_files=tmp_path / "y.npy")
    os.remove(tmp_path / "x.npy")
    with pytest.raises(FileNotFoundError):
        next(iter(blocks))


def test_load_preserves_sparse_models(tmp_path):
    X, y = make_ratings(300)
    model = FactorizationRegressor(rank=2).fit(X, y)
    restored = save_and_load(model, tmp_path / "m")
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    assert restored.n_features_in_ == X.shape[1]


def test_load_file_without_checksum_warns():
    path = Path(__file__).parents[2] / "tests" / "stored_models" / "model-format-1.dyad"
    with pytest.warns(UserWarning, match="checksum"):
        assert isinstance(dyad.load(path), dyad.FactorizationRegressor)


def test_load_detects_changed_bits(tmp_path):
    path = tmp_path / "model.dyad"
    X = np.random.default_rng(0).normal(size=(40, 3))
    dyad.FactorizationRegressor(rank=2).fit(X, X[:, 0]).save(path)
    content = bytearray(path.read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dyad.load(path)
    for position in range(0, len(content), 97):
        damaged = content.copy()
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(dyad.DataError):
            dyad.load(path)
