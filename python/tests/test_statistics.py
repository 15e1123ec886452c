"""Rows in many places, one model."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import made
from dyad import FactorizationRegressor


def started(X, y):
    return FactorizationRegressor(rank=3, solver="moment").partial_fit(X[:500], y[:500])


def after(rounds, X, y, ends):
    model = started(X, y)
    cuts = list(zip([0, *ends[:-1]], ends))
    for _ in range(rounds):
        parts = [pickle.loads(pickle.dumps(model)).partial_statistics(X[a:b], y[a:b]) for a, b in cuts]
        model.apply_statistics(sum(pickle.loads(pickle.dumps(part)) for part in parts))
    return model


def test_parts_give_the_model_of_all_rows():
    X, y = made(10_000)
    fresh, truth = made(2000, seed=1)
    one = after(12, X, y, [10_000])
    many = after(12, X, y, [1, 4000, 4500, 10_000])
    np.testing.assert_allclose(one.predict(fresh), many.predict(fresh), rtol=1e-9)
    assert np.sqrt(np.mean((many.predict(fresh) - truth) ** 2)) < 0.32  # of which 0.3 is noise
    assert many.summary_["steps_taken"] > 3


def test_weights_are_copies():
    X, y = made(3000)
    weights = np.where(np.arange(3000) < 1000, 2.0, 1.0)
    model = started(X, y)
    twice = model.partial_statistics(X, y) + model.partial_statistics(X[:1000], y[:1000])
    weighted = pickle.loads(pickle.dumps(model)).apply_statistics(model.partial_statistics(X, y, weights))
    model.apply_statistics(twice)
    assert weighted.summary_["rmse"] == pytest.approx(model.summary_["rmse"], rel=1e-12)


def test_wrong_use_is_said():
    X, y = made(2000)
    with pytest.raises(NotFittedError):
        FactorizationRegressor(solver="moment").partial_statistics(X, y)
    with pytest.raises(ValueError, match="moment solver"):
        FactorizationRegressor(rank=2).fit(X, y).partial_statistics(X, y)
    model = started(X, y)
    old = model.partial_statistics(X, y)
    model.apply_statistics(old)
    with pytest.raises(ValueError, match="another model"):
        model.apply_statistics(old)
    with pytest.raises(ValueError, match="different models"):
        old + model.partial_statistics(X, y)
    with pytest.raises(TypeError):
        old + 1
