"""Steps of the Kalman filter from random posteriors, compared with the NumPy reference.

The posterior is written to a model file, ``train --resume`` learns a few rows, and the posterior is read from the file.
"""

import numpy as np
import pytest
from reference import problems, state
from reference.model_file import ModelFile


def randomize(filter, case, random):
    """Replace means, variances and noise by random values. Parameters that are not estimated stay 0."""
    learned = filter.variances > 0
    filter.means = filter.means.with_vector(np.where(learned, 0.5 * random.normal(size=learned.size), 0))
    filter.variances = np.where(learned, random.uniform(0.01, 1, size=learned.size), 0)
    if case.kind in ("gfm", "sensing"):
        filter.means.signs = random.choice([-1.0, 1.0], size=filter.means.signs.size)
    noise = 10 ** random.uniform(-4, 0)
    filter.noise.value, filter.noise.recent = noise, noise * random.uniform(0.1, 2)
    filter.noise.rows = float(random.integers(1000))
    filter.noise.since_fall = float(random.integers(100))
    filter.innovation_ratio = random.choice([1.0, 9.9])
    filter.recent_squares = random.uniform(0.1, 2)
    filter.rows = 100.0
    filter.last_seen = random.integers(40, 100, size=filter.last_seen.size).astype(float)


def assert_equal_filters(found, expected, tolerance):
    for name in ("noise", "rows", "innovation_ratio", "recent_squares", "last_seen", "variances"):
        left, right = getattr(found, name), getattr(expected, name)
        if name == "noise":
            left, right = list(vars(left).values()), list(vars(right).values())
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=1e-3 * tolerance, err_msg=name)
    left, right = found.means.vector(), expected.means.vector()
    np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg="means")


@pytest.mark.parametrize("seed", range(4 * len(problems.SHAPES)))
def test_filter_steps_equal_reference(seed, tmp_path):
    random = np.random.default_rng(seed)
    case = problems.random_case(random, seed, "kalman")
    case.precision = "single" if random.integers(5) == 0 else "double"
    options = ["--forget", "20"] if random.integers(3) == 0 else []
    base = problems.train(case, problems.random_rows(case, random, 60), tmp_path, "--solver", "kalman", *options)
    file = ModelFile.read(base)
    filter = state.read_filter(file)
    randomize(filter, case, random)
    state.write_filter(file, filter)
    expected = state.read_filter(file)

    rows = problems.random_rows(case, random, int(random.integers(1, 6)))
    if case.has_weights:
        rows.weights[0] = 0
    after = problems.resume(file, rows, tmp_path)
    X, y = rows.encoded(file)
    for x, target, weight in zip(X, y, rows.weights):
        expected.step(x, target, weight, (x != 0) | rows.are_dense(X.shape[1]))
    assert_equal_filters(state.read_filter(after), expected, 1e-3 if case.precision == "single" else 1e-9)
