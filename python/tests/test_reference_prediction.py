"""Predictions of model files with random parameters, compared with the NumPy reference."""

import numpy as np
import pytest
from reference import problems, state
from reference.encoding import Encoder
from reference.model_file import ModelFile
from reference.prediction import Model


def randomize(file, random):
    """Replace the parameters of the model and its posterior by random values. Large values give predictions that are clipped."""
    size = random.choice([0.3, 3])
    for name in ("intercept", "weights", "factors", "spectrum", "squares"):
        values = file.tensors[name]
        file.tensors[name] = random.normal(size=values.shape).astype(values.dtype) * values.dtype.type(size)
    filter = state.read_filter(file)
    filter.means = filter.means.with_vector(0.5 * random.normal(size=filter.variances.size))
    filter.variances = random.uniform(0, 1, size=filter.variances.size)
    filter.noise.value = random.uniform(0.1, 2)
    state.write_filter(file, filter)


def with_unknown_cells(rows):
    """Return the rows with unknown categories or indices in every third row."""
    for row in rows.cells[::3]:
        if rows.case.layout == "libsvm":
            row[1000] = 1.5
        elif "left_category" in row:
            row["left_category"] = "unseen"
    return rows


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

    encoder, filter = Encoder(file), state.read_filter(file)
    features = np.array([encoder.encode(row) for row in rows.cells])
    expected = encoder.in_units(Model.of(file, encoder.left_dim).predict(features))
    variances = np.array([filter.predict(x)[1] for x in features])
    if case.is_class:
        deviations = expected * (1 - expected) * np.sqrt(variances)
    else:
        deviations = encoder.target["scaling"]["scale"] * np.sqrt(variances + filter.noise.value)
    found = problems.predict(model, rows, tmp_path, "--std")
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[:, 1], deviations, rtol=1e-10, atol=1e-13)

    rows = with_unknown_cells(rows)
    features = np.array([encoder.encode(row) for row in rows.cells])
    expected = encoder.in_units(Model.of(file, encoder.left_dim).predict(features))
    np.testing.assert_allclose(problems.predict(model, rows, tmp_path)[:, 0], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("seed", range(2 * len(problems.SHAPES)))
def test_model_equals_posterior_mean(seed, tmp_path):
    """The parameters of the model equal the means of the filter."""
    random = np.random.default_rng(1000 + seed)
    case = problems.random_case(random, seed, "kalman")
    case.is_class = False  # a classifier of few rows is constant
    file = ModelFile.read(problems.train(case, problems.random_rows(case, random, 60), tmp_path, "--solver", "kalman"))
    means = state.read_filter(file).means.model()
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
