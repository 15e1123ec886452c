import numpy as np
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
