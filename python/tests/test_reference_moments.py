"""Moment sums and one-scan updates from random models, compared with the NumPy reference.

The test writes a model file, trains on a batch with ``train --resume``, and reads the sums and the next model from the file.
"""

import dataclasses

import numpy as np
import pytest
from reference import moments, problems, state
from reference.encoding import Encoder
from reference.model_file import ModelFile
from reference.prediction import Model

BATCH_ROWS = 50


def orthonormal(random, dim, rank, left_dim):
    sides = [random.normal(size=(count, rank)) for count in ((left_dim, dim - left_dim) if left_dim else (dim,))]
    return np.vstack([np.linalg.qr(side)[0] for side in sides])


def random_start(case, random, dim, rank, left_dim):
    """Return random factors, the arrays of a model, and the model."""
    factors = orthonormal(random, dim, rank, left_dim)
    left, right = (factors[:left_dim], factors[left_dim:]) if left_dim else (factors, factors)
    spectrum = random.normal(size=rank)
    if case.kind in ("phase", "bilinear"):
        spectrum = np.abs(spectrum)
    M = left * spectrum @ right.T
    squares = {"tied": np.zeros(0), "zero": -np.diag(M), "free": random.normal(size=dim)}[case.diagonal]
    has_linear = not case.is_measurement
    arrays = {
        "intercept": random.normal() * has_linear,
        "weights": random.normal(size=dim) * has_linear,
        "spectrum": spectrum,
        "squares": squares,
    }
    model = Model(arrays["intercept"], arrays["weights"], M, squares if squares.size else np.zeros(dim), left_dim)
    return factors, arrays, model


@dataclasses.dataclass
class Start:
    case: problems.Case
    file: ModelFile
    factors: np.ndarray
    model: Model
    features: moments.FeatureMoments
    moments: str


def make_start(seed, random, folder):
    """Return a file in which the moment solver starts a batch with a random model and the moments of earlier rows."""
    case = problems.random_case(random, seed, "moment")
    case.precision = "single" if random.integers(5) == 0 else "double"
    rows = problems.random_rows(case, random, BATCH_ROWS - 1)
    file = ModelFile.read(problems.train(case, rows, folder, "--solver", "moment", "--batch", str(BATCH_ROWS)))
    encoder = Encoder(file)
    rank = int(file.metadata["training.rank"])  # reduced if a side has few features
    factors, arrays, model = random_start(case, random, encoder.dim, rank, encoder.left_dim)
    features = moments.FeatureMoments.of(rows.encoded(file)[0], rows.weights)
    moments_kind = "gaussian" if case.kind == "bilinear" else random.choice(["automatic", "gaussian", "estimated"])
    state.start_batch(file, factors, arrays, features, moments_kind)
    return Start(case, file, factors, model, features, moments_kind)


def assert_close(found, expected, tolerance):
    """Compare with a tolerance relative to the largest value."""
    largest = np.max(np.abs(expected), initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(largest, 1e-300))


@pytest.mark.parametrize("seed", range(2 * len(problems.SHAPES)))
def test_sums_equal_reference(seed, tmp_path):
    random = np.random.default_rng(seed)
    start = make_start(seed, random, tmp_path)
    rows = problems.random_rows(start.case, random, int(random.integers(1, BATCH_ROWS)))
    sums, features = state.read_sums(problems.resume(start.file, rows, tmp_path))
    X, y = rows.encoded(start.file)
    expected = moments.sum_moments(start.model, start.factors, X, y, rows.weights)
    tolerance = 1e-4 if start.case.precision == "single" else 1e-11
    for name in ("weight", "p0", "residual_squares", "p1", "G"):
        assert_close(getattr(sums, name), getattr(expected, name), tolerance)
    if sums.p2.size:
        assert_close(sums.p2, expected.p2, tolerance)
    expected_features = moments.FeatureMoments.of(X, rows.weights)
    for name in ("weight", "squared_weights", "sums"):
        assert_close(getattr(features, name), getattr(expected_features, name), tolerance)


@pytest.mark.parametrize("seed", range(3 * len(problems.SHAPES)))
def test_update_equals_reference(seed, tmp_path):
    random = np.random.default_rng(seed)
    start = make_start(seed, random, tmp_path)
    case = start.case
    rows = problems.random_rows(case, random, BATCH_ROWS)
    found = state.read_proposed_model(problems.resume(start.file, rows, tmp_path), start.model.left_dim)
    X, y = rows.encoded(start.file)
    features = start.features + moments.FeatureMoments.of(X, rows.weights)
    is_gaussian = features.is_gaussian() if start.moments == "automatic" else start.moments == "gaussian"
    shape = moments.Shape(
        diagonal=case.diagonal,
        linear=not case.is_measurement,
        intercept=not case.is_measurement,
        positive=case.kind == "phase",
        centered=not case.is_measurement,
        gaussian=is_gaussian,
    )
    expected = moments.update(start.model, start.factors, X, y, rows.weights, features, shape)
    tolerance = 1e-3 if case.precision == "single" else 1e-9
    for name in ("intercept", "weights", "M", "squares"):
        assert_close(getattr(found, name), getattr(expected, name), tolerance)
