"""Additive statistics of the moment solver."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import make_rows
from dyad import FactorizationRegressor


def start_model(X, y):
    return FactorizationRegressor(rank=3, solver="moment").partial_fit(X[:500], y[:500])


def train_partitioned(iterations, X, y, ends):
    """Train on partitions that end at the given rows."""
    model = start_model(X, y)
    bounds = list(zip([0, *ends[:-1]], ends))
    for _ in range(iterations):
        statistics = [pickle.loads(pickle.dumps(model)).partial_statistics(X[a:b], y[a:b]) for a, b in bounds]
        model.apply_statistics(sum(pickle.loads(pickle.dumps(each)) for each in statistics))
    return model


def test_statistics_do_not_depend_on_partitioning():
    X, y = make_rows(10_000)
    fresh, truth = make_rows(2000, seed=1)
    one = train_partitioned(12, X, y, [10_000])
    many = train_partitioned(12, X, y, [1, 4000, 4500, 10_000])
    np.testing.assert_allclose(one.predict(fresh), many.predict(fresh), rtol=1e-9)
    assert np.sqrt(np.mean((many.predict(fresh) - truth) ** 2)) < 0.32  # the noise is 0.3
    assert many.summary_["steps_taken"] > 3


def test_weights_equal_repeated_rows():
    X, y = make_rows(3000)
    weights = np.where(np.arange(3000) < 1000, 2.0, 1.0)
    model = start_model(X, y)
    twice = model.partial_statistics(X, y) + model.partial_statistics(X[:1000], y[:1000])
    weighted = pickle.loads(pickle.dumps(model)).apply_statistics(model.partial_statistics(X, y, weights))
    model.apply_statistics(twice)
    assert weighted.summary_["rmse"] == pytest.approx(model.summary_["rmse"], rel=1e-12)


def test_invalid_statistics_raise():
    X, y = make_rows(2000)
    with pytest.raises(NotFittedError):
        FactorizationRegressor(solver="moment").partial_statistics(X, y)
    with pytest.raises(ValueError, match="moment"):
        FactorizationRegressor(rank=2).fit(X, y).partial_statistics(X, y)
    model = start_model(X, y)
    old = model.partial_statistics(X, y)
    model.apply_statistics(old)
    with pytest.raises(ValueError, match="statistics"):
        model.apply_statistics(old)
    with pytest.raises(ValueError, match="statistics"):
        old + model.partial_statistics(X, y)
    with pytest.raises(TypeError):
        old + 1
