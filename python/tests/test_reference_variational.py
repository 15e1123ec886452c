"""One variational sweep over random rows, compared with the NumPy reference."""

import dataclasses

import numpy as np
import pytest
from reference import problems, state, variational
from reference.model_file import ModelFile


def random_case(random, seed):
    """Return a case that sweeps support: gfm without a tied diagonal, or bilinear with one feature per side."""
    case = problems.random_case(random, seed, "variational")
    case.kind = "gfm" if random.integers(4) else "bilinear"
    case.is_class = bool(random.integers(2))
    case.has_range = not case.is_class and bool(random.integers(2))
    case.diagonal = "tied" if case.kind == "bilinear" else str(random.choice(["zero", "free"]))
    case.has_pairs = case.kind == "bilinear" or bool(random.integers(2))
    if case.kind == "bilinear" or case.has_pairs and case.layout == "npy":
        case.layout, case.hash_bits = "csv", 0
    case.rank = int(random.integers(1, 3))
    return case


def posterior_of(filter):
    """Return the posterior of a filter for features of scale 1. A bilinear model becomes symmetric, with A / sqrt(2)."""
    shape = filter.means
    variances = shape.with_vector(filter.variances)
    means = shape.copy()
    means.intercept -= shape.square_centre * shape.squares.sum()
    means.square_centre = variances.square_centre = 0
    for parameters, power in ((means, 1), (variances, 2)):
        scale = filter.scales**power
        parameters.weights *= scale
        parameters.squares *= scale**2
        parameters.A *= scale[:, None] / (np.sqrt(2) ** power if shape.left_dim else 1)
        if shape.left_dim:
            parameters.left_dim, parameters.diagonal = 0, "zero"
    return variational.Posterior(means, variances, filter.noise.value, np.ones(shape.A.shape[1] + 2))


def train_twice(seed, folder):
    """Return a case, its rows, and the model files after one sweep and after two. A sweep depends on the posterior only."""
    random = np.random.default_rng(seed)
    case = random_case(random, seed)
    rows = problems.random_rows(case, random, 30, signal=3)
    solver = "auto" if case.kind == "bilinear" else "variational"
    files = [
        ModelFile.read(problems.train(case, rows, folder, "--solver", solver, "--passes", str(passes)))
        for passes in (2, 3)
    ]
    return case, rows, *files


@pytest.mark.parametrize("seed", range(60))
def test_sweep_equals_reference(seed, tmp_path):
    case, rows, first, second = train_twice(seed, tmp_path)
    before, after = state.read_filter(first), state.read_filter(second)
    X, y = rows.encoded(first)
    scaled = np.divide(X, before.scales, out=np.zeros_like(X), where=before.scales > 0)
    data = variational.Rows(scaled, y, rows.weights, case.is_class, before.low, before.high)
    start = posterior_of(before)
    start = dataclasses.replace(start, precisions=variational.estimate_precisions(start, data))
    expected, found = variational.sweep(start, data), posterior_of(after)
    np.testing.assert_allclose(found.means.vector(), expected.means.vector(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.variances.vector(), expected.variances.vector(), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(found.noise, expected.noise, rtol=1e-9)
