"""Rows in parts, in one process: what every engine does."""

import numpy as np
import pytest
from scipy import sparse

from dyad import FactorizationClassifier, FactorizationRegressor, _core
from dyad._files import from_bytes
from dyad._parts import Block, LocalParts, joined, learn, sample_of


def settings(solver, rank=3):
    chosen = _core.Settings()
    chosen.rank, chosen.seed, chosen.target, chosen.precision = rank, 1, "target", "double"
    chosen.solver = None if solver == "auto" else solver
    return chosen


def dense_blocks(X, y, parts, weights=None):
    cut = np.array_split(np.arange(len(y)), parts)
    return [[Block(X.shape[1], X[at], y[at], None if weights is None else weights[at])] for at in cut]


def fitted(parts, solver, labels=(), sample_rows=1000, **kwargs):
    model, summary = learn(
        LocalParts(parts),
        settings(solver, **kwargs),
        list(labels),
        sample_rows=sample_rows,
        most_looks=100,
        report=lambda *_: None,
    )
    return from_bytes(model), summary


def rows(count=4000, d=8, noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, d))
    y = 1 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return X, y + noise * random.normal(size=count)


@pytest.mark.parametrize("solver", ["newton", "moment"])
def test_model_does_not_depend_on_the_parts(solver):
    X, y = rows(noise=0.2)
    one, _ = fitted(dense_blocks(X, y, 1), solver)
    many, _ = fitted(dense_blocks(X, y, 5), solver)
    np.testing.assert_allclose(many.predict(X), one.predict(X), atol=1e-9)


def test_gauss_newton_finds_what_one_process_finds():
    X, y = rows()
    there = FactorizationRegressor(rank=2, solver="newton").fit(X, y)
    here, summary = fitted(dense_blocks(X, y, 3), "newton", rank=2)
    np.testing.assert_allclose(here.predict(X), there.predict(X), atol=1e-9)
    np.testing.assert_allclose(here.predict(X), y, atol=1e-9)
    assert summary["rows"] == 4000


def test_few_rows_are_fitted_on_the_driver_as_anywhere():
    X, y = rows(count=500, noise=0.2)
    here, _ = fitted(dense_blocks(X, y, 4), "auto")
    there = FactorizationRegressor(rank=3).fit(X, y)
    np.testing.assert_allclose(here.predict(X), there.predict(X), atol=1e-7)


def test_weights_count_like_copies():
    X, y = rows(noise=0.3)
    y[::2] += 0.5 * X[::2, 4]  # of which the weights say how much counts
    weights = np.where(np.arange(len(y)) % 2 == 0, 3.0, 1.0)
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted, _ = fitted(dense_blocks(X, y, 2, weights), "newton")
    copied, _ = fitted(dense_blocks(X[copies], y[copies], 2), "newton")
    plain, _ = fitted(dense_blocks(X, y, 2), "newton")
    apart = [np.sqrt(np.mean((weighted.predict(X) - other.predict(X)) ** 2)) for other in (copied, plain)]
    assert apart[0] < 0.3 * apart[1]


def test_classes():
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 6))
    y = (random.random(4000) < 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))).astype(float)
    here, _ = fitted(dense_blocks(X, y, 3), "auto", labels=["0", "1"])
    there = FactorizationClassifier(rank=3).fit(X, y)
    p, q = here.predict_proba(X)[:, 1], there.predict_proba(X)[:, 1]
    loss = [-np.mean(np.where(y > 0, np.log(one), np.log(1 - one))) for one in (p, q)]
    assert loss[0] < 1.02 * loss[1]


def test_sample_is_the_same_whatever_the_parts():
    X, y = rows(count=300, noise=0.2)
    whole = [block.with_hashes() for part in dense_blocks(X, y, 1) for block in part]
    cut = [block.with_hashes() for part in dense_blocks(X, y, 7) for block in part]
    one, other = joined(sample_of(whole, 0.3, is_sparse=True)), joined(sample_of(cut, 0.3, is_sparse=True))
    assert 60 < len(one) < 120
    for name in ("values", "targets", "indices", "offsets", "hashes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_rows_that_are_all_alike_are_learned():
    X = np.tile([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]], (3000, 1))
    y = np.tile([1.0, 5.0], 3000)
    model, _ = fitted(dense_blocks(X, y, 3), "kalman", sample_rows=1)
    np.testing.assert_allclose(model.predict(X[:2]), y[:2], atol=0.1)


def test_a_wild_row_does_not_undo_the_others():
    X, y = rows(count=6000, noise=0.2)
    y[5500], X[5600] = 1e12, 1e9
    model, _ = fitted(dense_blocks(X, y, 2), "auto")
    there = np.setdiff1d(np.arange(6000), [5500, 5600])
    assert np.sqrt(np.mean((model.predict(X[there]) - y[there]) ** 2)) < 0.5


def test_blocks_change_their_layout_and_back():
    X = sparse.random(50, 9, 0.3, "csr", rng=np.random.default_rng(2))
    block = Block(9, X.data, np.arange(50.0), None, X.indices, X.indptr)
    np.testing.assert_array_equal(block.as_dense().values, X.toarray())
    chosen = np.array([7, 3, 3, 0])
    np.testing.assert_array_equal(block.only(chosen).as_dense().values, X.toarray()[chosen])
    np.testing.assert_array_equal(block.as_dense().as_sparse().as_dense().values, X.toarray())
