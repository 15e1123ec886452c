"""Checks the phase retrieval algorithms against the results of their papers for real Gaussian rows."""

from __future__ import annotations

import types

import numpy as np
import pytest

import reweighted_amplitude_flow
import truncated_amplitude_flow
import wirtinger_flow
from phase import signal_error
from planted import plant_signal

SEEDS = 10


def count_successes(method: types.ModuleType, dim: int, rows: int) -> int:
    """Return the number of seeds with an error below 1e-5."""
    successes = 0
    for seed in range(SEEDS):
        X, y, signal = plant_signal(dim, rows, seed)
        successes += signal_error(method.recover_signal(X, y).signal, signal) < 1e-5
    return successes


# Figures of the papers: WF needs more than 4.5 d rows, TAF recovers nearly all signals from 3 d, RAF from 2 d for d = 1000.
# The ratios of TAF and WF have a margin for smaller d.
@pytest.mark.parametrize(
    ("method", "dim", "ratio"),
    [(wirtinger_flow, 100, 8), (truncated_amplitude_flow, 100, 3.5), (reweighted_amplitude_flow, 400, 2.2)],
)
def test_recovers_from_published_number_of_rows(method: types.ModuleType, dim: int, ratio: float) -> None:
    assert count_successes(method, dim, int(ratio * dim)) >= SEEDS - 1


def test_wirtinger_flow_fails_where_amplitude_flows_succeed() -> None:
    assert count_successes(wirtinger_flow, 100, 250) <= 3
    assert count_successes(truncated_amplitude_flow, 100, 250) >= 7
    assert count_successes(reweighted_amplitude_flow, 100, 250) >= 7


@pytest.mark.parametrize("method", [wirtinger_flow, truncated_amplitude_flow, reweighted_amplitude_flow])
def test_signal_is_a_fixed_point(method: types.ModuleType) -> None:
    X, y, signal = plant_signal(20, 400, 1)
    estimate = method.recover_signal(X, y)
    assert signal_error(estimate.signal, signal) < 1e-5
    assert signal_error(-estimate.signal, signal) == signal_error(estimate.signal, signal)
    assert np.isfinite(estimate.signal).all()
    assert estimate.iterations < method.MAX_ITERATIONS
