"""Checks ScaledGD and alternating minimization against the results of their papers."""

from __future__ import annotations

import types

import numpy as np
import pytest

import alternating_minimization
import scaled_gradient_descent
from measurements import RankOneMeasurements, matrix_error
from planted import RANK, plant_bilinear, plant_symmetric

METHODS = [scaled_gradient_descent, alternating_minimization]
DIM = 30


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spectrum", [[1, 0.9, 0.8], [1, 0.5, 0.05]])
def test_recovers_bilinear_matrix_with_linear_term(method: types.ModuleType, spectrum: list[float]) -> None:
    rows = 3 * (RANK * (2 * DIM - RANK) + 2 * DIM)
    for seed in range(3):
        data, M = plant_bilinear(DIM, rows, spectrum, seed)
        assert matrix_error(method.recover_matrix(data, RANK).matrix, M) < 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spectrum", [[1, 0.9, 0.8], [1, -0.9, 0.8]])
def test_recovers_symmetric_matrix(method: types.ModuleType, spectrum: list[float]) -> None:
    rows = 6 * (RANK * DIM - 3)
    for seed in range(3):
        data, M = plant_symmetric(DIM, rows, spectrum, seed)
        assert matrix_error(method.recover_matrix(data, RANK).matrix, M) < 1e-6


# Theorem of the paper for RIP measurements; the number of iterations of plain gradient descent grows with the condition number.
def test_iterations_of_scaled_gradient_do_not_depend_on_condition() -> None:
    rows = 8 * RANK * (2 * DIM - RANK)
    iterations = []
    for condition in (1, 10, 100):
        data, _ = plant_bilinear(DIM, rows, list(np.linspace(1, 1 / condition, RANK)), seed=1)
        iterations.append(scaled_gradient_descent.recover_matrix(data, RANK).iterations)
    assert max(iterations) < 1.5 * min(iterations)


# Zhong, Jain and Dhillon: the error decreases linearly, with a rate independent of the condition number.
def test_alternating_minimization_converges_linearly() -> None:
    rows = 6 * (RANK * (2 * DIM - RANK) + 2 * DIM)
    data, _ = plant_bilinear(DIM, rows, [1, 0.5, 0.1], seed=2)
    U, V = data.spectral_initialization(RANK)
    losses = []
    for _ in range(6):
        U, V = alternating_minimization.update_factors(data, U, V)
        losses.append(data.relative_residual(data.residuals(U, V)))
    assert all(after < 0.5 * before for before, after in zip(losses, losses[1:]))


def test_iteration_preserves_signs_of_symmetric_initialization() -> None:
    data, M = plant_symmetric(DIM, 6 * RANK * DIM, [1, -0.9, 0.8], seed=3)
    estimate = scaled_gradient_descent.recover_matrix(data, RANK).matrix
    assert np.array_equal(estimate, estimate.T)
    assert (np.linalg.eigvalsh(estimate) < -0.5).sum() == (np.linalg.eigvalsh(M) < -0.5).sum() == 1


def test_adjoint_is_unbiased() -> None:
    data, M = plant_bilinear(4, 200_000, [1, 0.5], seed=4)
    assert np.abs(data.adjoint(data.y) - M).max() < 0.05
    symmetric, M = plant_symmetric(4, 200_000, [1, -0.5], seed=5)
    expectation = M + np.trace(M) / 2 * np.eye(4)
    assert np.abs(symmetric.adjoint(symmetric.y) - expectation).max() < 0.05


def test_antisymmetric_directions_do_not_change_predictions() -> None:
    random = np.random.default_rng(6)
    X = random.normal(size=(50, 8))
    V = np.linalg.qr(random.normal(size=(8, RANK)))[0]
    data = RankOneMeasurements(X, X, np.zeros(50))
    for direction in alternating_minimization.antisymmetric_directions(V).T:
        assert np.abs(data.residuals(direction.reshape(8, RANK), V)).max() < 1e-12
