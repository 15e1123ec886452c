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
