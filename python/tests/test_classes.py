"""Models of more than two classes."""

import os
import pickle
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dyad
from dyad import FactorizationClassifier, load

DYAD = os.environ.get("DYAD_COMMAND", "dyad")


def make_classes(count=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3))
    score = X[:, 0] * X[:, 1] + 0.2 * random.normal(size=count)
    return X, np.digitize(score, [-0.4, 0.4])


@pytest.fixture(scope="module")
def model():
    return FactorizationClassifier(rank=2, solver="kalman", n_jobs=1).fit(*make_classes())


def test_probabilities_are_softmax_of_decision(model):
    X, _ = make_classes(200, 1)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-14)
    np.testing.assert_allclose(softmax(model.decision_function(X), axis=1), probabilities, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


def test_standard_deviations_of_probabilities(model):
    X, _ = make_classes(50, 1)
    probabilities, deviations = model.predict_proba(X, return_std=True)
    assert deviations.shape == probabilities.shape == (50, 3)
    assert (deviations > 0).all() and (deviations < 0.5).all()
    np.testing.assert_array_equal(model.predict_proba(X), probabilities)


@pytest.mark.parametrize("data", [load_iris, load_wine], ids=["iris", "wine"])
def test_log_loss_is_no_worse_than_logistic_regression(data):
    X, y = data(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    losses = []
    for estimator in (
        FactorizationClassifier(n_jobs=1),
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)),
    ):
        probabilities = cross_val_predict(estimator, X, y, cv=folds, method="predict_proba")
        losses.append(-np.log(np.clip(probabilities[np.arange(len(y)), y], 1e-15, 1)))
    difference = losses[0] - losses[1]
    assert difference.mean() <= difference.std() / np.sqrt(len(y))


@pytest.mark.parametrize(
    "labels",
    [["a", "b", "c"], [3, 7, 9], [1.0, 2.0, 3.0], ["1", "2", "3"], ["01", "1", "1.0"]],
    ids=["text", "integers", "floats", "digits", "equal numbers"],
)
def test_save_and_load_preserve_labels_and_predictions(tmp_path, labels):
    X, codes = make_classes(150)
    y = np.array(labels)[codes]
    model = FactorizationClassifier(rank=1, solver="kalman", n_jobs=1).fit(X, y)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.temperature_ == model.temperature_
    assert loaded.get_params() == model.get_params()


def test_pickle_and_clone(model):
    X, _ = make_classes(20, 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(model), "classes_")


def test_command_and_estimator_read_the_models_of_each_other(tmp_path):
    X, codes = make_classes(300)
    y = np.array([10, 20, 30])[codes]
    frame = pd.DataFrame(X, columns=list("abc"))
    frame.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    options = ["--target", "y", "--task", "classification", "--solver", "kalman", "--rank", "2", "--quiet"]
    subprocess.run([DYAD, "train", tmp_path / "rows.csv", "-m", tmp_path / "command", *options], check=True)
    estimator = FactorizationClassifier(rank=2, solver="kalman").fit(frame, y)
    estimator.save(tmp_path / "estimator")
    loaded = load(tmp_path / "command")
    assert loaded.classes_.tolist() == [10, 20, 30] and loaded.classes_.dtype.kind == "i"
    np.testing.assert_allclose(loaded.predict_proba(frame), estimator.predict_proba(frame), atol=1e-9)
    command = [DYAD, "predict", "-m", tmp_path / "estimator", tmp_path / "rows.csv", "--quiet"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    np.testing.assert_allclose(np.loadtxt(printed.splitlines(), delimiter=","), estimator.predict_proba(frame), atol=1e-9)


def test_partial_fit_learns_further_rows():
    X, y = make_classes(900)
    model = FactorizationClassifier(rank=2, solver="kalman", n_jobs=1)
    model.partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    first = log_loss(y[600:], model.predict_proba(X[600:]))
    model.partial_fit(X[300:600], y[300:600])
    assert model.summary_[0]["all_rows"] == 600
    assert log_loss(y[600:], model.predict_proba(X[600:])) < first + 0.05
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3])


def test_rare_class_gets_a_small_probability():
    X, y = make_classes(400)
    y[0] = 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorizationClassifier(rank=2, solver="kalman").fit(X, y)
    assert model.predict_proba(X)[1:, 3].max() < 0.2


def test_sparse_rows_and_weights():
    import scipy.sparse as sp

    X, y = make_classes(300)
    weights = np.ones(300)
    weights[:50] = 0
    estimator = FactorizationClassifier(rank=2, solver="kalman", n_jobs=1)
    weighted = estimator.fit(X, y, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(clone(estimator).fit(X[50:], y[50:]).predict_proba(X), weighted, atol=1e-9)
    sparse = clone(estimator).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(sparse.predict_proba(sp.csr_matrix(X)).sum(axis=1), 1, atol=1e-12)


def test_files_of_other_models_are_rejected(model):
    with pytest.raises(dyad.DataError):
        dyad._core.ClassPredictor.from_bytes(model._models[0])
    with pytest.raises(dyad.DataError):
        dyad._core.Predictor.from_bytes(model._container)
