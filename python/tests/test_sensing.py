import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from dyad import InductiveMatrixCompletion, MatrixSensing, PhaseRetrieval


@pytest.mark.parametrize("seed", range(3))
def test_matrix_sensing_recovers_indefinite_matrix(seed):
    random = np.random.default_rng(seed)
    U = np.linalg.qr(random.normal(size=(30, 3)))[0]
    M = (U * [2.0, -1.5, 1.0]) @ U.T
    A = random.normal(size=(2 * (3 * 30 - 3), 30))
    found = MatrixSensing(rank=3).fit(A, np.einsum("ij,jk,ik->i", A, M, A))
    np.testing.assert_allclose(found.matrix_, M, atol=1e-6)
    fresh = random.normal(size=(5, 30))
    np.testing.assert_allclose(found.predict(fresh), np.einsum("ij,jk,ik->i", fresh, M, fresh), atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_phase_retrieval_recovers_signal_up_to_sign(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=40)
    A = random.normal(size=(100, 40))
    found = PhaseRetrieval().fit(A, (A @ x) ** 2)
    np.testing.assert_allclose(PhaseRetrieval.align(found.signal_, x), x, atol=1e-6)
    np.testing.assert_allclose(PhaseRetrieval.align(-found.signal_, x), x, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_completion_predicts_unobserved_rows(form):
    random = np.random.default_rng(0)
    X, Z = random.normal(size=(80, 7)), random.normal(size=(60, 6))
    full = 1 + X @ random.normal(size=7)[:, None] + X @ random.normal(size=(7, 2)) @ random.normal(size=(2, 6)) @ Z.T
    i, j = random.integers(60, size=600), random.integers(50, size=600)
    model = InductiveMatrixCompletion(rank=2).fit(form(X), form(Z), i, j, full[i, j])
    np.testing.assert_allclose(model.predict(form(X), form(Z)), full, atol=1e-2)
    np.testing.assert_allclose(model.predict(form(X), form(Z), [70, 71], [55, 3]), full[[70, 71], [55, 3]], atol=1e-2)


def test_matrix_sensing_warns_about_too_few_measurements():
    random = np.random.default_rng(0)
    A = random.normal(size=(60, 30))
    M = np.diag(random.normal(size=30))
    with pytest.warns(ConvergenceWarning, match="unknowns"):
        MatrixSensing(rank=3).fit(A, np.einsum("ij,jk,ik->i", A, M, A))


def test_invalid_input_raises_value_error():
    X, Z = np.ones((4, 2)), np.ones((3, 2))
    model = InductiveMatrixCompletion(rank=1)
    with pytest.raises(NotFittedError):
        model.predict(X, Z)
    with pytest.raises(ValueError, match="rows"):
        model.fit(X, Z, [5], [0], [1.0])
    with pytest.raises(ValueError, match="columns"):
        model.fit(X, Z, [0], [0.5], [1.0])
    with pytest.raises(ValueError, match="values"):
        model.fit(X, Z, [0], [0], [1.0, 2.0])
    with pytest.raises(ValueError, match="rank"):
        MatrixSensing(rank=0).fit(X, np.ones(4))
    for complex_one in (([1.0], [1j]), ([1 + 1j], [1.0])):
        with pytest.raises(ValueError, match="real"):
            PhaseRetrieval.align(*complex_one)
    with pytest.raises(ValueError, match="shape"):
        PhaseRetrieval.align([1.0], [1.0, 2.0])


def test_fit_reports_name_the_cause():
    random = np.random.default_rng(1)
    A = random.normal(size=(240, 20))
    x = random.normal(size=20)
    y = (A @ x) ** 2
    exact = PhaseRetrieval().fit(A, y)
    assert exact.fit_report_["status"] == "converged"
    assert exact.fit_report_["noise"] < 1e-9
    with pytest.warns(ConvergenceWarning):
        assert PhaseRetrieval().fit(A, -y).fit_report_["status"] == "inconsistent_sign"
    with pytest.warns(ConvergenceWarning):
        assert MatrixSensing(rank=2).fit(A[:30], y[:30]).fit_report_["status"] == "too_few_rows"
    repeated = A.copy()
    repeated[:, 3] = repeated[:, 4]
    with pytest.warns(ConvergenceWarning):
        assert PhaseRetrieval().fit(repeated, (repeated @ x) ** 2).fit_report_["status"] == "not_identifiable"
    sum_of_squares = y + (A @ random.normal(size=20)) ** 2
    with pytest.warns(ConvergenceWarning):
        assert MatrixSensing(rank=1).fit(A, sum_of_squares).fit_report_["status"] == "rank_too_small"


def test_outliers_are_excluded():
    random = np.random.default_rng(2)
    A = random.normal(size=(240, 20))
    x = random.normal(size=20)
    y = (A @ x) ** 2 + 0.1 * random.normal(size=240)
    y[::20] += 10 * y.std()
    with pytest.warns(ConvergenceWarning, match="outliers"):
        model = PhaseRetrieval().fit(A, y)
    assert model.fit_report_["outliers"] >= 12
    # The error of least squares is about 0.1 sqrt(d / n) / 2 per |x| = 4.5.
    np.testing.assert_allclose(PhaseRetrieval.align(model.signal_, x), x, atol=0.05)


def test_standard_errors_are_those_of_repeated_fits():
    random = np.random.default_rng(3)
    A = random.normal(size=(120, 6))
    x = np.arange(1.0, 7.0)
    signals, errors = [], []
    for _ in range(60):
        model = PhaseRetrieval().fit(A, (A @ x) ** 2 + 0.5 * random.normal(size=120))
        signals.append(PhaseRetrieval.align(model.signal_, x))
        errors.append(model.signal_std_)
    # The standard deviation of 60 values has a relative standard error of 9%.
    np.testing.assert_allclose(np.std(signals, axis=0), np.mean(errors, axis=0), rtol=5 * 0.09)
    sensing = MatrixSensing(rank=1).fit(A, (A @ x) ** 2 + 0.5 * random.normal(size=120))
    assert sensing.matrix_std_.shape == (6, 6)
    np.testing.assert_allclose(sensing.matrix_std_, sensing.matrix_std_.T)


def test_measurements_of_weight_zero_are_ignored():
    random = np.random.default_rng(4)
    A = random.normal(size=(60, 10))
    x = random.normal(size=10)
    y = (A @ x) ** 2
    weights = np.ones(60)
    weights[::3] = 0
    y[::3] = 1e3
    model = PhaseRetrieval().fit(A, y, sample_weight=weights)
    np.testing.assert_allclose(PhaseRetrieval.align(model.signal_, x), x, atol=1e-6)
    with pytest.raises(ValueError, match="weight"):
        MatrixSensing().fit(A, y, sample_weight=np.zeros(60))


def test_loaded_estimators_have_no_standard_errors(tmp_path):
    import dyad

    random = np.random.default_rng(5)
    A = random.normal(size=(60, 10))
    model = PhaseRetrieval().fit(A, (A @ random.normal(size=10)) ** 2)
    model.save(tmp_path / "model.dyad")
    loaded = dyad.load(tmp_path / "model.dyad")
    assert loaded.fit_report_ == {}
    with pytest.raises(AttributeError, match="signal_std_"):
        _ = loaded.signal_std_


def sensing_rows(seed=0, count=150, dim=8):
    random = np.random.default_rng(seed)
    A = np.where(random.random((count, dim)) < 0.5, random.normal(size=(count, dim)), 0)
    x = random.normal(size=dim)
    return A, (A @ x) ** 2 + 0.1 * random.normal(size=count), x


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.coo_array, pd.DataFrame, "polars"])
@pytest.mark.parametrize("kind", [MatrixSensing, PhaseRetrieval])
def test_measurements_of_all_forms_give_the_same_model(kind, form):
    A, y, _ = sensing_rows()
    if form == "polars":
        form = pytest.importorskip("polars").DataFrame
    expected = kind(n_jobs=1).fit(A, y)
    model = kind(n_jobs=1).fit(form(A), y)
    np.testing.assert_allclose(model.predict(form(A)), expected.predict(A), rtol=1e-9, atol=1e-9)
    assert expected.score(A, y) > 0.9
    assert model.score(form(A), y) == pytest.approx(expected.score(A, y))
    if form is pd.DataFrame:
        named = kind().fit(form(A, columns=list("abcdefgh")), y)
        assert list(named.feature_names_in_) == list("abcdefgh")
        with pytest.raises(ValueError, match="feature names"):
            named.predict(form(A, columns=list("abcdefgx")))


def test_fit_report_has_residual_and_degrees_of_freedom():
    A, y, _ = sensing_rows(count=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # converged fits do not warn
        report = MatrixSensing(rank=1).fit(A, y).fit_report_
    assert report["status"] == "converged"
    assert report["degrees_of_freedom"] == 8
    assert report["residual"] == pytest.approx(0.1, rel=0.15)
    assert report["residual"] == pytest.approx(report["noise"], rel=0.05)
    assert MatrixSensing(rank=3).fit(A, y).fit_report_["degrees_of_freedom"] == 3 * 8 - 3


def test_warm_start_continues_from_the_fitted_model(tmp_path):
    import dyad

    A, y, x = sensing_rows(count=400)
    for estimator in (MatrixSensing(warm_start=True), PhaseRetrieval(warm_start=True)):
        estimator.fit(A[:100], y[:100])
        before = np.mean((estimator.predict(A) - (A @ x) ** 2) ** 2)
        estimator.fit(A[100:], y[100:])
        assert estimator.summary_["all_rows"] == 400
        assert np.mean((estimator.predict(A) - (A @ x) ** 2) ** 2) < before
        estimator.save(tmp_path / "model.dyad")
        assert dyad.load(tmp_path / "model.dyad").fit(A, y).summary_["all_rows"] == 800
        with pytest.raises(ValueError, match="features"):
            estimator.fit(A[:, :5], y)
    with pytest.raises(ValueError, match="rank"):
        MatrixSensing(warm_start=True).fit(A, y).set_params(rank=2).fit(A, y)


def completion_problem(noise=0.1):
    random = np.random.default_rng(0)
    X, Z = random.normal(3, 2, size=(60, 5)), random.normal(size=(50, 4))
    M = random.normal(size=(5, 2)) @ random.normal(size=(2, 4))
    full = 3 + (X - 3) @ M @ Z.T
    observed = random.random(full.shape) < 0.2
    return X, Z, M, full, np.where(observed, full + noise * random.normal(size=full.shape), np.nan)


@pytest.mark.parametrize("form", ["nan", "coo", "csr", "frame"])
def test_completion_of_a_matrix_equals_that_of_entries(form):
    X, Z, M, full, partial = completion_problem()
    i, j = np.nonzero(~np.isnan(partial))
    expected = InductiveMatrixCompletion(rank=2, n_jobs=1).fit(X, Z, i, j, partial[i, j])
    sparse = sp.coo_array((partial[i, j], (i, j)), shape=partial.shape)
    matrix = {"nan": partial, "coo": sparse, "csr": sparse.tocsr(), "frame": pd.DataFrame(partial)}[form]
    model = InductiveMatrixCompletion(rank=2, n_jobs=1).fit(X, Z, matrix=matrix)
    assert model._model == expected._model
    assert model.score(X, Z, matrix=matrix) == expected.score(X, Z, i, j, partial[i, j]) > 0.99
    np.testing.assert_allclose(model.matrix_, M, atol=0.05)
    terms = model.intercept_ + (X @ model.row_coef_)[:, None] + Z @ model.column_coef_ + X @ model.matrix_ @ Z.T
    np.testing.assert_allclose(terms, model.predict(X, Z), rtol=1e-8, atol=1e-8)


def test_completion_standard_deviations_have_nominal_coverage():
    X, Z, _, full, partial = completion_problem(noise=0.5)
    model = InductiveMatrixCompletion(rank=2).fit(X, Z, matrix=partial)
    values, deviations = model.predict(X, Z, return_std=True)
    assert values.shape == deviations.shape == full.shape
    fresh = full + 0.5 * np.random.default_rng(1).normal(size=full.shape)
    assert np.mean(np.abs(values - fresh) < deviations) == pytest.approx(0.68, abs=0.04)
    some, std = model.predict(X, Z, [3, 4], [5, 6], return_std=True)
    np.testing.assert_allclose(some, values[[3, 4], [5, 6]])
    np.testing.assert_allclose(std, deviations[[3, 4], [5, 6]])
    assert model.fit_report_["degrees_of_freedom"] == 1 + 9 + 2 * (9 - 2)
    assert model.fit_report_["residual"] == pytest.approx(0.5, rel=0.15)


def test_completion_supports_names_weights_and_warm_start(tmp_path):
    import dyad

    X, Z, _, full, partial = completion_problem()
    rows, columns = pd.DataFrame(X, columns=list("abcde")), pd.DataFrame(Z, columns=list("wxyz"))
    model = InductiveMatrixCompletion(rank=2, warm_start=True).fit(rows, columns, matrix=partial)
    assert list(model.feature_names_in_) == list("abcdewxyz")
    with pytest.raises(ValueError, match="'q'"):
        model.predict(rows.rename(columns={"b": "q"}), columns)
    model.save(tmp_path / "model.dyad")
    restored = dyad.load(tmp_path / "model.dyad")
    assert list(restored.feature_names_in_) == list("abcdewxyz")
    np.testing.assert_array_equal(restored.matrix_, model.matrix_)
    count = model.summary_["all_rows"]
    assert model.fit(rows, columns, matrix=partial).summary_["all_rows"] == 2 * count
    i, j = np.nonzero(~np.isnan(partial))
    values, weights = partial[i, j].copy(), np.ones(len(i))
    values[::10], weights[::10] = 1e3, 0
    weighted = InductiveMatrixCompletion(rank=2).fit(X, Z, i, j, values, weights)
    np.testing.assert_allclose(weighted.predict(X, Z), full, atol=1)


def test_invalid_matrices_raise_value_error():
    X, Z, _, _, partial = completion_problem()
    for arguments in (
        {"matrix": partial.T},
        {"matrix": partial[0]},
        {"matrix": np.full(partial.shape, np.nan)},
        {"matrix": partial, "rows": [0], "columns": [0], "values": [1.0]},
        {"rows": [0], "columns": [0]},
        {},
    ):
        with pytest.raises(ValueError, match="matrix"):
            InductiveMatrixCompletion().fit(X, Z, **arguments)
