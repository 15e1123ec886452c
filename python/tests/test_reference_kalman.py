"""Steps of the Kalman filter from random posteriors, compared with the NumPy reference.

The posterior is written to a model file, ``train --resume`` learns a few rows, and the posterior is read from the file.
"""

import numpy as np
import pytest
from reference import problems, state
from reference.further_passes import relearn
from reference.hierarchical import HierarchicalFilter, start
from reference.model_file import ModelFile
from reference.prediction import Model


def randomize(filter, case, random):
    """Replace means, variances and noise by random values. Parameters that are not estimated stay 0."""
    learned = filter.variances > 0
    filter.means = filter.means.with_vector(np.where(learned, 0.5 * random.normal(size=learned.size), 0))
    filter.variances = np.where(learned, random.uniform(0.01, 1, size=learned.size), 0)
    if case.kind in ("gfm", "sensing"):
        filter.means.signs = random.choice([-1.0, 1.0], size=filter.means.signs.size)
    filter.noise.value = 10 ** random.uniform(-4, 0)
    if isinstance(filter, HierarchicalFilter):
        randomize_prior(filter, random)
    else:
        filter.noise.recent = filter.noise.value * random.uniform(0.1, 2)
        filter.noise.rows = float(random.integers(1000))
        filter.noise.since_fall = float(random.integers(100))
    filter.innovation_ratio = random.choice([1.0, 9.9])
    filter.recent_squares = random.uniform(0.1, 2)
    filter.rows = 100.0
    filter.last_seen = random.integers(40, 100, size=filter.last_seen.size).astype(float)


def randomize_prior(filter, random):
    """Replace group means and prior variances by random values. The next row can be that of an update of the prior.

    The variances of the parameters, which are at most 1 for features of scale 1, do not exceed those of the prior.
    """
    learned = filter.group_variances > 0
    filter.group_means = np.where(learned, random.normal(size=learned.shape), 0)
    filter.group_variances = np.where(learned, random.uniform(0.01, 1, size=learned.shape), 0)
    filter.learned.tau = random.uniform(1, 3, size=filter.learned.tau.shape)
    filter.variances = np.minimum(filter.variances, filter.prior_variances())
    filter.noise.log_variance = random.uniform(1e-3, 0.1)
    filter.next_update = float(random.choice([101, 103, 1000]))


def assert_equal_filters(found, expected, tolerance):
    names = ["rows", "innovation_ratio", "recent_squares", "last_seen", "variances"]
    pairs = [(name, getattr(found, name), getattr(expected, name)) for name in names]
    if not expected.is_class:
        pairs.append(("noise", list(vars(found.noise).values()), list(vars(expected.noise).values())))
    if isinstance(expected, HierarchicalFilter):
        names = ["group_variances", "next_update"]
        pairs += [(name, getattr(found, name), getattr(expected, name)) for name in names]
        if not expected.is_class:
            pairs += [(name, value, vars(expected.feature_noise)[name]) for name, value in vars(found.feature_noise).items()]
        pairs.append(("tau", found.learned.tau, expected.learned.tau))
    for name, left, right in pairs:
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=1e-3 * tolerance, err_msg=name)
    pairs = [("means", found.means.vector(), expected.means.vector())]
    if isinstance(expected, HierarchicalFilter):
        pairs.append(("group means", found.group_means, expected.group_means))
    for name, left, right in pairs:
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance, err_msg=name)


def learn(filter, rows, X, y):
    for x, target, weight in zip(X, y, rows.weights):
        filter.step(x, target, weight, (x != 0) | rows.are_dense(X.shape[1]))


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
    learn(expected, rows, *rows.encoded(file))
    assert_equal_filters(state.read_filter(after), expected, 1e-3 if case.precision == "single" else 1e-9)


def assert_first_pass_equals_reference(case, random, seed, folder, *options):
    """Compare start, steps and updates of the prior. Three updates take place, after 200, 300 and 420 rows."""
    rows = problems.random_rows(case, random, 450, signal=1)
    options = [*options, "--solver", "kalman", "--passes", "1", "--memory", "0", "--seed", str(seed)]
    file = ModelFile.read(problems.train(case, rows, folder, *options))
    found = state.read_filter(file)
    X, y = rows.encoded(file)
    expected = start(found, X, y, (X != 0).sum(axis=1), seed)
    learn(expected, rows, X, y)
    assert_equal_filters(found, expected, 1e-7)
    return file, found


@pytest.mark.parametrize("seed", range(24))
def test_first_pass_equals_reference(seed, tmp_path):
    random = np.random.default_rng(seed)
    kind, diagonal = [("bilinear", "tied"), ("gfm", "tied"), ("gfm", "zero"), ("gfm", "free")][seed % 4]
    case = problems.Case(kind=kind, layout="csv", diagonal=diagonal, is_class=seed % 8 >= 4)
    case.has_pairs = bool(random.integers(2))
    case.has_range = not case.is_class and bool(random.integers(2))
    assert_first_pass_equals_reference(case, random, seed, tmp_path)


@pytest.mark.parametrize("has_indicators", [False, True])
@pytest.mark.parametrize("diagonal", ["tied", "zero", "free"])
@pytest.mark.parametrize("seed", range(3))
def test_first_pass_with_given_groups_equals_reference(seed, diagonal, has_indicators, tmp_path):
    """Groups of libsvm indices have a mean if they are groups of indicators. The model contains the means."""
    case = problems.Case(layout="libsvm", diagonal=diagonal, has_pairs=True, has_indicators=has_indicators)
    options = ["--groups", problems.group_file(tmp_path)]
    file, filter = assert_first_pass_equals_reference(case, np.random.default_rng(seed), seed, tmp_path, *options)
    assert len(np.unique(filter.groups)) == 2
    assert np.any(filter.group_variances > 0) == has_indicators
    model, expected = Model.of(file, 0), filter.model_parameters().model()
    np.testing.assert_allclose(model.M, expected.M, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.weights, expected.weights, rtol=1e-12)


@pytest.mark.parametrize("seed", range(24))
def test_second_pass_equals_reference(seed, tmp_path):
    """The filter after two passes equals that after one pass if held-out rows prefer one pass."""
    random = np.random.default_rng(seed)
    kind, diagonal = [("bilinear", "tied"), ("gfm", "tied"), ("gfm", "zero"), ("gfm", "free")][seed % 4]
    case = problems.Case(kind=kind, layout="csv", diagonal=diagonal, is_class=seed % 8 >= 4, has_pairs=True)
    rows = problems.random_rows(case, random, 300, signal=2)
    options = ["--solver", "kalman", "--seed", str(seed)]
    first, second = [
        ModelFile.read(problems.train(case, rows, tmp_path, *options, "--passes", passes)) for passes in ("1", "2")
    ]
    expected, found = state.read_filter(first), state.read_filter(second)
    if found.relative_deviation == 0:
        relearn(expected, *rows.encoded(first), seed, 2)
    assert_equal_filters(found, expected, 1e-7)
    assert found.relative_deviation == expected.relative_deviation
