"""Predictions of model files with random parameters, compared with the NumPy reference."""

import numpy as np
import pytest
from reference import problems, state
from reference.encoding import Encoder
from reference.hierarchical import HierarchicalFilter
from reference.kalman import posterior_scale
from reference.model_file import ModelFile
from reference.prediction import Model


def randomize(file, random):
    """Replace the parameters of the model and its posterior by random values. Large values give predictions that are clipped."""
    size = random.choice([0.3, 3])
    for name in ("intercept", "weights", "factors", "spectrum", "squares"):
        values = file.tensors[name]
        file.tensors[name] = random.normal(size=values.shape).astype(values.dtype) * values.dtype.type(size)
    filter = state.read_filter(file)
    learned = filter.variances > 0
    filter.means = filter.means.with_vector(np.where(learned, 0.5 * random.normal(size=learned.size), 0))
    filter.variances = np.where(learned, random.uniform(0, 1, size=learned.size), 0)
    filter.noise.value = random.uniform(0.1, 2)
    if isinstance(filter, HierarchicalFilter):
        learned = filter.group_variances > 0
        filter.group_means = np.where(learned, random.normal(size=learned.shape), 0)
        filter.group_variances = np.where(learned, random.uniform(0, 1, size=learned.shape), 0)
        filter.learned.tau = random.uniform(0.1, 2, size=filter.learned.tau.shape)
    state.write_filter(file, filter)


def with_unknown_cells(rows):
    """Return the rows with unknown categories or indices in every third row."""
    for row in rows.cells[::3]:
        if rows.case.layout == "libsvm":
            row[1000] = 1.5
        elif "left_category" in row:
            row["left_category"] = "unseen"
    return rows


def predict(file, rows):
    """Return predictions and standard deviations. A fixed prior omits unknown cells from the standard deviations."""
    encoder, filter = Encoder(file), state.read_filter(file)
    learns_prior = isinstance(filter, HierarchicalFilter)
    features = np.array([encoder.encode(row) for row in rows.cells])
    unknown = [(encoder.unknown_groups(row),) if learns_prior else () for row in rows.cells]
    means, variances = np.array([filter.predict(x, *groups) for x, groups in zip(features, unknown)]).T
    if learns_prior and rows.case.is_class:
        predictors = posterior_scale(variances) * means
    else:
        predictors = Model.of(file, encoder.left_dim).predict(features)
    values = encoder.in_units(predictors)
    if rows.case.is_class:
        return values, values * (1 - values) * np.sqrt(variances)
    noise = filter.noise.value
    if learns_prior:
        noise = [filter.noise_variance(x, len(encoder.unknown_groups(row)) > 0) for x, row in zip(features, rows.cells)]
    return values, encoder.target["scaling"]["scale"] * np.sqrt(variances + noise)


@pytest.mark.parametrize("seed", range(3 * len(problems.SHAPES)))
def test_predictions_equal_reference(seed, tmp_path):
    random = np.random.default_rng(seed)
    case = problems.random_case(random, seed, "kalman")
    case.precision = "single" if random.integers(4) == 0 else "double"
    case.rank = 1 if case.kind == "phase" else int(random.choice([1, 2, 6]))
    model = problems.train(case, problems.random_rows(case, random, 50), tmp_path, "--solver", "kalman")
    file = ModelFile.read(model)
    randomize(file, random)
    file.write(model)
    rows = problems.random_rows(case, random, 12)

    found = problems.predict(model, rows, tmp_path, "--std")
    expected, deviations = predict(file, rows)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[:, 1], deviations, rtol=1e-10, atol=1e-13)

    rows = with_unknown_cells(rows)
    found = problems.predict(model, rows, tmp_path, "--std")
    expected, deviations = predict(file, rows)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-10)
    if isinstance(state.read_filter(file), HierarchicalFilter):
        np.testing.assert_allclose(found[:, 1], deviations, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("seed", range(2 * len(problems.SHAPES)))
def test_model_equals_posterior_mean(seed, tmp_path):
    """The parameters of the model equal the means of the filter, with the group means of a hierarchical prior."""
    random = np.random.default_rng(1000 + seed)
    case = problems.random_case(random, seed, "kalman")
    case.is_class = False  # a classifier of few rows is constant
    file = ModelFile.read(problems.train(case, problems.random_rows(case, random, 60), tmp_path, "--solver", "kalman"))
    means = state.read_filter(file).model_parameters().model()
    model = Model.of(file, Encoder(file).left_dim)
    np.testing.assert_allclose(model.M, means.M, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.weights, means.weights, rtol=1e-12)
    np.testing.assert_allclose(model.squares, means.squares, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept, means.intercept, rtol=1e-9, atol=1e-12)


def test_model_file_with_wrong_checksum_raises_value_error(tmp_path):
    """The reference verifies the checksum of the command, and the command verifies the checksum of the reference."""
    random = np.random.default_rng(0)
    case = problems.Case()
    rows = problems.random_rows(case, random, 30)
    model = problems.train(case, rows, tmp_path)
    content = bytearray(model.read_bytes())
    ModelFile.read(model).write(model)
    problems.run("predict", "-m", str(model), *rows.write(tmp_path, "rows"))
    content[-3] ^= 1
    model.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        ModelFile.read(model)
