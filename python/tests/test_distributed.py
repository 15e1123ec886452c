"""Distributed training with partitions in one process."""

import numpy as np
import pytest
from scipy import sparse

from dyad import FactorizationClassifier, FactorizationRegressor, _core
from dyad._files import from_bytes
from dyad._distributed import Block, LocalPartitions, concatenate_by_hash, sample_blocks, train, train_classes


def make_settings(solver, rank=3):
    settings = _core.Settings()
    settings.rank, settings.seed, settings.target, settings.precision = rank, 1, "target", "double"
    settings.solver = None if solver == "auto" else solver
    return settings


def dense_partitions(X, y, count, weights=None):
    """Return partitions of one dense block each."""
    indices = np.array_split(np.arange(len(y)), count)
    return [[Block(X.shape[1], X[i], y[i], None if weights is None else weights[i])] for i in indices]


def fit(partitions, solver, labels=(), sample_rows=1000, **kwargs):
    """Return the estimator and the summary of distributed training."""
    model, summary = train(
        LocalPartitions(partitions),
        make_settings(solver, **kwargs),
        list(labels),
        sample_rows=sample_rows,
        max_data_passes=100,
        progress=lambda *_: None,
    )
    return from_bytes(model), summary


def make_rows(count=4000, d=8, noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, d))
    y = 1 + X[:, 0] - 2 * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2
    return X, y + noise * random.normal(size=count)


@pytest.mark.parametrize("solver", ["newton", "moment"])
def test_train_does_not_depend_on_partitioning(solver):
    X, y = make_rows(noise=0.2)
    one, _ = fit(dense_partitions(X, y, 1), solver)
    many, _ = fit(dense_partitions(X, y, 5), solver)
    np.testing.assert_allclose(many.predict(X), one.predict(X), atol=1e-9)


def test_newton_equals_single_process():
    X, y = make_rows()
    local = FactorizationRegressor(rank=2, solver="newton").fit(X, y)
    distributed, summary = fit(dense_partitions(X, y, 3), "newton", rank=2)
    np.testing.assert_allclose(distributed.predict(X), local.predict(X), atol=1e-9)
    np.testing.assert_allclose(distributed.predict(X), y, atol=1e-9)
    assert summary["rows"] == 4000


def test_train_small_data_equals_single_process():
    X, y = make_rows(count=500, noise=0.2)
    distributed, _ = fit(dense_partitions(X, y, 4), "auto")
    local = FactorizationRegressor(rank=3).fit(X, y)
    np.testing.assert_allclose(distributed.predict(X), local.predict(X), atol=1e-7)


def test_weights_equal_repeated_rows():
    X, y = make_rows(noise=0.3)
    y[::2] += 0.5 * X[::2, 4]  # an effect in the rows of weight 3
    weights = np.where(np.arange(len(y)) % 2 == 0, 3.0, 1.0)
    copies = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted, _ = fit(dense_partitions(X, y, 2, weights), "newton")
    copied, _ = fit(dense_partitions(X[copies], y[copies], 2), "newton")
    plain, _ = fit(dense_partitions(X, y, 2), "newton")
    distances = [np.sqrt(np.mean((weighted.predict(X) - other.predict(X)) ** 2)) for other in (copied, plain)]
    assert distances[0] < 0.3 * distances[1]


def test_classification_loss_is_near_single_process():
    random = np.random.default_rng(1)
    X = random.normal(size=(4000, 6))
    y = (random.random(4000) < 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))).astype(float)
    distributed, _ = fit(dense_partitions(X, y, 3), "auto", labels=["0", "1"])
    local = FactorizationClassifier(rank=3).fit(X, y)
    p, q = distributed.predict_proba(X)[:, 1], local.predict_proba(X)[:, 1]
    loss = [-np.mean(np.where(y > 0, np.log(one), np.log(1 - one))) for one in (p, q)]
    assert loss[0] < 1.02 * loss[1]


def test_sample_does_not_depend_on_partitioning():
    X, y = make_rows(count=300, noise=0.2)
    samples = []
    for count in (1, 7):
        blocks = [block.with_hashes() for partition in dense_partitions(X, y, count) for block in partition]
        samples.append(concatenate_by_hash(sample_blocks(blocks, 0.3, is_sparse=True)))
    one, other = samples
    assert 60 < len(one) < 120
    for name in ("values", "targets", "indices", "offsets", "hashes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_train_accepts_identical_rows():
    X = np.tile([[1.0, 2.0, 3.0], [3.0, 1.0, 0.0]], (3000, 1))
    y = np.tile([1.0, 5.0], 3000)
    model, _ = fit(dense_partitions(X, y, 3), "kalman", sample_rows=1)
    np.testing.assert_allclose(model.predict(X[:2]), y[:2], atol=0.1)


def test_train_is_robust_to_outliers():
    X, y = make_rows(count=6000, noise=0.2)
    y[5500], X[5600] = 1e12, 1e9
    model, _ = fit(dense_partitions(X, y, 2), "auto")
    regular = np.setdiff1d(np.arange(6000), [5500, 5600])
    assert np.sqrt(np.mean((model.predict(X[regular]) - y[regular]) ** 2)) < 0.5


def test_block_layout_conversion_is_lossless():
    X = sparse.random(50, 9, 0.3, "csr", rng=np.random.default_rng(2))
    block = Block(9, X.data, np.arange(50.0), None, X.indices, X.indptr)
    np.testing.assert_array_equal(block.to_dense().values, X.toarray())
    chosen = np.array([7, 3, 3, 0])
    np.testing.assert_array_equal(block.take_rows(chosen).to_dense().values, X.toarray()[chosen])
    np.testing.assert_array_equal(block.to_dense().to_sparse().to_dense().values, X.toarray())


def fit_tables(X, y, count, labels=(), start_model=None, sample_rows=1000):
    """Return the model file of distributed training by the solver anova, and the summary."""
    settings = make_settings("auto", rank=None)
    return train(
        LocalPartitions(dense_partitions(X, y, count)),
        settings,
        list(labels),
        sample_rows=sample_rows,
        max_data_passes=100,
        progress=lambda *_: None,
        start_model=start_model,
    )


def make_curves(count=6000, noise=0.3, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise * random.normal(size=count)


def test_sums_of_functions_do_not_depend_on_partitioning():
    X, y = make_curves()
    one, summary = fit_tables(X, y, 1)
    assert "ANOVA" in summary["origin"]
    expected = from_bytes(one).predict(X)
    for count in (3, 7):
        np.testing.assert_allclose(from_bytes(fit_tables(X, y, count)[0]).predict(X), expected, atol=1e-9)
    fresh, targets = make_curves(seed=1)
    local = FactorizationRegressor().fit(X, y)
    losses = [np.sqrt(np.mean((m.predict(fresh) - targets) ** 2)) for m in (from_bytes(one), local)]
    assert losses[0] < 1.03 * losses[1]


def test_sums_of_functions_fit_classes():
    X, score = make_curves(count=8000)
    y = (score > 0).astype(float)
    model, _ = fit_tables(X, y, 3, labels=["no", "yes"])
    fresh, fresh_score = make_curves(seed=1)
    labels = fresh_score > 0

    def log_loss(estimator):
        probability = estimator.predict_proba(fresh)[:, 1]
        return -np.mean(np.log(np.where(labels, probability, 1 - probability)))

    assert log_loss(from_bytes(model)) < 1.03 * log_loss(FactorizationClassifier().fit(X, y))


def test_sums_of_functions_continue_from_a_model():
    X, y = make_curves(count=8000)
    first, _ = fit_tables(X[:4000], y[:4000], 2)
    both, _ = fit_tables(X[4000:], y[4000:], 2, start_model=first)
    fresh, targets = make_curves(seed=1)
    losses = [np.sqrt(np.mean((from_bytes(m).predict(fresh) - targets) ** 2)) for m in (first, both)]
    assert losses[1] < losses[0]


def test_classes_do_not_depend_on_partitioning():
    X, y = make_rows(count=3000, d=4, noise=0.2)
    codes = np.digitize(y, [0, 2]).astype(float)

    def fit_classes(count, sample_rows, solver="newton", start_model=None, rows=slice(None)):
        model, summary = train_classes(
            LocalPartitions(dense_partitions(X[rows], codes[rows], count)),
            lambda: make_settings(solver, rank=2),
            ["0", "1", "2"],
            sample_rows=sample_rows,
            max_data_passes=20,
            progress=lambda *_: None,
            start_model=start_model,
        )
        return model, from_bytes(model), summary

    _, one, _ = fit_classes(1, 500)
    _, many, summary = fit_classes(4, 500)
    np.testing.assert_allclose(many.predict_proba(X), one.predict_proba(X), atol=1e-9)
    assert len(summary["classes"]) == 3 and summary["rows"] == 3000
    assert np.mean(many.predict(X) == codes) > 0.8
    _, small, _ = fit_classes(2, 3000, "kalman")
    local = FactorizationClassifier(rank=2, solver="kalman")
    assert abs(np.mean(small.predict(X) == codes) - np.mean(local.fit(X, codes).predict(X) == codes)) < 0.05
    start, many, _ = fit_classes(4, 500, "kalman")
    _, continued, _ = fit_classes(2, 500, "kalman", start, slice(0, 1000))
    assert continued.temperature_ == many.temperature_
