"""Gauss-Newton steps from random parameters, and fits of the whole solver, compared with the NumPy reference."""

import dataclasses

import dyad
import numpy as np
import pytest
from dyad import _testing
from reference import state
from reference.gauss_newton import Problem
from reference.model_file import ModelFile
from reference.prediction import SignedFactors

# Constants of the library.
INITIAL_DAMPING = 1e-2
FIRST_RIDGE_SHARE = 0.1  # first ridge of dense rows, relative to the mean of the sums of squares of the features


def random_problem(random):
    """Return a problem with partly sparse rows and a model of any kind, and start parameters."""
    dim, rank, count = int(random.integers(2, 7)), int(random.integers(1, 3)), int(random.integers(5, 40))
    left_dim = int(random.integers(1, dim)) if random.integers(3) == 0 else 0
    is_measurement = not left_dim and random.integers(4) == 0
    is_class = not is_measurement and bool(random.integers(2))
    X = random.normal(size=(count, dim)) * (random.random(size=(count, dim)) < 0.8)
    y = random.normal(size=count)
    low, high = (-1.0, 1.0) if random.integers(2) and not is_class else (-np.inf, np.inf)
    problem = Problem(
        X=X,
        y=np.sign(y) if is_class else np.clip(y, low, high),
        weights=random.uniform(0.5, 2, size=count) * (random.random(size=count) < 0.9),
        is_class=is_class,
        low=low,
        high=high,
        linear=not is_measurement,
        intercept=not is_measurement,
        ridge_weights=float(random.choice([0.0, 0.3])),
        ridge_factors=float(random.choice([0.0, 0.7])),
    )
    diagonal = "tied" if left_dim or is_measurement else str(random.choice(["tied", "zero", "free"]))
    start = SignedFactors(
        intercept=random.normal() * problem.intercept,
        weights=random.normal(size=dim) * problem.linear,
        squares=random.normal(size=dim) * (diagonal == "free"),
        A=random.normal(size=(dim, rank)) * random.choice([1, 1e-5], size=rank, p=[0.9, 0.1]),
        signs=np.ones(rank) if left_dim else random.choice([-1.0, 1.0], size=rank),
        diagonal=diagonal,
        left_dim=left_dim,
    )
    return problem, start


def library_step(problem, start, sparse):
    """Return the parameters and the objective after one step of the library."""
    given, at = _testing.Problem(), _testing.Parameters()
    given.values, given.targets, given.weights = problem.X.ravel().tolist(), problem.y.tolist(), problem.weights.tolist()
    given.sparse = sparse
    for name in ("is_class", "low", "high", "linear", "intercept", "ridge_weights", "ridge_factors"):
        setattr(given, name, getattr(problem, name))
    for name in ("weights", "squares", "A", "signs"):
        setattr(at, name, getattr(start, name).ravel().tolist())
    at.intercept, at.diagonal, at.left_dim = start.intercept, start.diagonal, start.left_dim
    found, objective = _testing.gauss_newton_step(given, at)
    vector = np.concatenate([[found.intercept], found.weights, found.squares, found.A])
    return start.with_vector(vector), objective


@pytest.mark.parametrize("seed", range(150))
def test_step_equals_reference(seed):
    random = np.random.default_rng(seed)
    problem, start = random_problem(random)
    expected = problem.step(start, INITIAL_DAMPING)
    found, objective = library_step(problem, start, sparse=seed % 2 == 0)
    size = np.abs(expected.vector()).max()
    np.testing.assert_allclose(found.vector(), expected.vector(), rtol=1e-7, atol=1e-7 * size)
    np.testing.assert_allclose(objective, problem.objective(found), rtol=1e-10)


@pytest.mark.parametrize("seed", range(30))
def test_reference_gradient_equals_finite_differences(seed):
    """The gradient of the reference equals central differences of its objective."""
    problem, theta = random_problem(np.random.default_rng(seed))
    problem = dataclasses.replace(problem, low=-np.inf, high=np.inf)  # the censored loss is not differentiable everywhere
    gradient, at = problem.gradient(theta), theta.vector()
    for i in np.flatnonzero(problem.learned(theta)):
        h = 1e-5 * np.eye(at.size)[i]
        difference = (problem.objective(theta.with_vector(at + h)) - problem.objective(theta.with_vector(at - h))) / 2e-5
        np.testing.assert_allclose(gradient[i], difference, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("is_class", [False, True])
@pytest.mark.parametrize("diagonal", ["tied", "zero", "free"])
@pytest.mark.parametrize("seed", range(5))
def test_fit_is_stationary_for_dense_rows(seed, diagonal, is_class, tmp_path):
    """After one regularization level, the gradient of the objective with the first ridge is 0."""
    random = np.random.default_rng(seed)
    X = random.normal(1, 2, size=(80, 4))
    y = X[:, 0] - X[:, 1] * X[:, 2] + X[:, 3] ** 2 + random.normal(size=80)
    estimator = dyad.FactorizationClassifier if is_class else dyad.FactorizationRegressor
    weights = random.integers(1, 3, size=80)
    model = estimator(rank=2, solver="newton", diagonal=diagonal, max_iter=2)
    model.fit(X, y > np.median(y) if is_class else y, sample_weight=weights).save(tmp_path / "model.dyad")
    file = ModelFile.read(tmp_path / "model.dyad")
    filter = state.read_filter(file)

    # Columns are standardized, then divided by the root mean square of their values.
    scalings = [column["scaling"] for column in file.features["columns"]]
    Z = (X - [s["centre"] for s in scalings]) / [s["scale"] for s in scalings] / filter.scales
    theta = filter.means.copy()
    theta.intercept -= theta.square_centre * theta.squares.sum()
    theta.square_centre = 0.0
    theta.weights, theta.squares = theta.weights * filter.scales, theta.squares * filter.scales**2
    theta.A = theta.A * filter.scales[:, None]
    target = file.features["target"]["scaling"]
    targets = np.where(y > np.median(y), 1, -1) if is_class else (y - target["centre"]) / target["scale"]
    deviation = 1 if is_class else np.sqrt(np.cov(targets, aweights=weights, ddof=0))
    ridge = FIRST_RIDGE_SHARE * (weights @ Z**2).mean()
    problem = Problem(Z, targets, weights, is_class, ridge_weights=ridge, ridge_factors=ridge * deviation)
    assert np.abs(problem.gradient(theta)).max() < 1e-9
    assert np.abs(problem.gradient(theta.with_vector(1.01 * theta.vector()))).max() > 1e-4
