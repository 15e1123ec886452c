"""Terms of predictions."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from dyad import (
    FactorizationClassifier,
    FactorizationRegressor,
    InductiveMatrixCompletion,
    MatrixSensing,
    PhaseRetrieval,
)


def make_table(count=300):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": random.normal(10, 3, count),
            "color": random.choice(["red", "green", "blue"], count),
            "age": random.normal(size=count),
        },
        index=np.arange(count) + 1000,
    )
    frame.loc[frame.index[::20], "size"] = np.nan
    y = np.where(frame["color"] == "red", 2, -1) * frame["size"].fillna(10) + frame["age"] * frame["size"].fillna(10)
    return frame, np.asarray(y) + 0.1 * random.normal(size=count)


def assert_sums(terms, expected):
    np.testing.assert_allclose(terms.sum(axis=1), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("solver", ["anova", "kalman", "newton", "sampling"])
def test_terms_add_up_to_prediction(solver):
    X, y = make_table()
    parameters = {} if solver == "anova" else {"rank": 2}
    model = FactorizationRegressor(solver=solver, n_jobs=1, **parameters).fit(X, y)
    rows = X.copy()
    rows.iloc[0, 1] = "unknown"
    rows.iloc[1, 2] = 1e4  # beyond the limits of the predictions
    terms = model.explain(rows)
    assert_sums(terms, model.predict(rows))
    assert terms.index.equals(rows.index)
    assert {"(intercept)", "size", "color"} <= set(terms.columns)
    shorter = model.explain(rows, top=2)
    assert "(other terms)" in shorter
    assert_sums(shorter, model.predict(rows))


@pytest.mark.parametrize("solver", ["anova", "kalman", "newton", "sampling"])
def test_terms_add_up_to_log_odds(solver):
    X, y = make_table()
    parameters = {} if solver == "anova" else {"rank": 2}
    binary = FactorizationClassifier(solver=solver, n_jobs=1, **parameters).fit(X, y > 0)
    assert_sums(binary.explain(X), binary.decision_function(X))
    classes = FactorizationClassifier(solver=solver, n_jobs=1, **parameters).fit(X, np.digitize(y, [-10, 10]))
    for index in range(3):
        assert_sums(classes.explain(X, class_index=index), classes.decision_function(X)[:, index])
    with pytest.raises(ValueError, match="class_index"):
        classes.explain(X)


def test_sparse_rows():
    X, y = make_table()
    dense = X[["size", "age"]].fillna(0).to_numpy()
    model = FactorizationRegressor(rank=2, solver="newton").fit(sp.csr_matrix(dense), y)
    assert_sums(model.explain(sp.csr_matrix(dense)), model.predict(sp.csr_matrix(dense)))


def test_measurements():
    random = np.random.default_rng(1)
    A = random.normal(size=(120, 6))
    M = np.outer(np.arange(6), np.arange(6)) / 10
    sensing = MatrixSensing(rank=1).fit(A, np.einsum("ij,jk,ik->i", A, M, A))
    terms = sensing.explain(A)
    assert_sums(terms, sensing.predict(A))
    np.testing.assert_allclose(terms["4 × 5"], 2 * M[4, 5] * A[:, 4] * A[:, 5], atol=1e-6)
    phase = PhaseRetrieval().fit(A, (A @ np.arange(6)) ** 2)
    assert_sums(phase.explain(A, top=3), phase.predict(A))


def test_completion():
    random = np.random.default_rng(1)
    X, Z = random.normal(size=(30, 4)), random.normal(size=(20, 3))
    matrix = X @ random.normal(size=(4, 1)) @ random.normal(size=(1, 3)) @ Z.T
    rows, columns = np.divmod(np.arange(600), 20)
    model = InductiveMatrixCompletion(rank=1).fit(X, Z, rows, columns, matrix.ravel())
    terms = model.explain(X, Z, rows[:50], columns[:50])
    assert_sums(terms, model.predict(X, Z, rows[:50], columns[:50]))
    assert "x0 × z2" in terms
    assert_sums(model.explain(X, Z), model.predict(X, Z).ravel())


def test_large_results_are_refused():
    X = np.random.default_rng(0).normal(size=(400, 400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FactorizationRegressor(rank=1, solver="kalman").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="top"):
        model.explain(X[np.repeat(np.arange(400), 2)])


def test_summary_card():
    X, y = make_table(100)
    model = FactorizationRegressor(rank=1, solver="kalman")
    assert "dyad-summary" not in model._repr_html_()
    model.fit(X.rename(columns={"age": "<age>"}), y)
    card = model._repr_html_()
    assert "dyad-summary" in card and "<age>" not in card
    assert "dyad-summary" in model._repr_mimebundle_()["text/html"]
    classes = FactorizationClassifier(rank=1, solver="kalman").fit(X, np.digitize(y, [-10, 10]))
    assert "temperature" in classes._repr_html_()
    A = np.random.default_rng(1).normal(size=(60, 4))
    assert "status" in PhaseRetrieval().fit(A, (A @ np.arange(4)) ** 2)._repr_html_()
