"""Arrays of all types, strides, orders and lengths give the same results as contiguous float64 arrays, or an error."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fuzz_arrays
from conftest import make_rows, make_ratings
from dyad import FactorizationRegressor, InductiveMatrixCompletion, _core


@pytest.fixture(scope="module")
def model():
    return FactorizationRegressor(rank=2).fit(*make_ratings(500))


@pytest.fixture
def fresh():
    X, _ = make_ratings(40, seed=1)
    X.data = np.random.default_rng(2).normal(size=len(X.data))
    return X


def with_arrays(X, **arrays):
    """Return a copy of the matrix with replaced arrays, which SciPy does not check."""
    X = X.copy()
    for name, values in arrays.items():
        setattr(X, name, values)
    return X


def with_stride_two(values):
    """Return the values as a view with a stride of two."""
    wide = np.zeros(2 * len(values), values.dtype)
    wide[1::2] = 7
    wide[::2] = values
    return wide[::2]


def test_predict_sparse_strided_arrays_equal_contiguous(model, fresh):
    expected = model.predict(fresh)
    np.testing.assert_array_equal(model.predict(fresh.astype(complex).real), expected)
    for name in ("data", "indices", "indptr"):
        values = getattr(fresh, name)
        for changed in (with_stride_two(values), values[::-1].copy()[::-1], values.astype(values.dtype.newbyteorder())):
            np.testing.assert_array_equal(model.predict(with_arrays(fresh, **{name: changed})), expected)
    for kind in ("i8", "u4"):
        changed = with_arrays(fresh, indices=fresh.indices.astype(kind), indptr=fresh.indptr.astype(kind))
        np.testing.assert_array_equal(model.predict(changed), expected)


def test_fit_sparse_strided_arrays_equal_contiguous():
    X, y = make_ratings(300)
    strided = with_arrays(X, data=with_stride_two(X.data), indices=with_stride_two(X.indices))
    expected = FactorizationRegressor(rank=2).fit(X, y).predict(X)
    np.testing.assert_array_equal(FactorizationRegressor(rank=2).fit(strided, y).predict(X), expected)


@pytest.mark.parametrize("layout", ["csc", "coo", "bsr", "lil", "dok", "dia"])
def test_predict_accepts_all_sparse_formats(model, fresh, layout):
    for matrix_class in (sp.csr_matrix, sp.csr_array):
        np.testing.assert_array_equal(model.predict(matrix_class(fresh).asformat(layout)), model.predict(fresh))


def test_predict_sorts_and_adds_sparse_indices(model, fresh):
    expected = model.predict(fresh)
    order = np.arange(len(fresh.data)).reshape(-1, 2)[:, ::-1].ravel()  # two entries in each row
    unsorted = with_arrays(fresh, data=fresh.data[order], indices=fresh.indices[order])
    unsorted.has_sorted_indices = unsorted.has_canonical_format = True  # wrong flag
    np.testing.assert_array_equal(model.predict(unsorted), expected)
    halves = sp.csr_matrix(
        (np.repeat(fresh.data / 2, 2), np.repeat(fresh.indices, 2), 2 * fresh.indptr), shape=fresh.shape
    )
    halves.has_canonical_format = True  # wrong flag
    np.testing.assert_allclose(model.predict(halves), expected, rtol=1e-12)
    longer = with_arrays(fresh, data=np.append(fresh.data, 5.0), indices=np.append(fresh.indices, 9999))
    np.testing.assert_array_equal(model.predict(longer), expected)  # entries after indptr[-1] are ignored


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_invalid_sparse_matrices_raise_value_error(model, fresh, layout):
    fresh = fresh.asformat(layout)
    entries = len(fresh.data)

    def changed(name, index, value):
        values = getattr(fresh, name).copy()
        values[index] = value
        return with_arrays(fresh, **{name: values})

    for damaged in (
        changed("indices", 3, -1),
        changed("indices", 3, 10**6),
        changed("indptr", 0, 1),
        changed("indptr", 2, 10**6),
        changed("indptr", 2, -5),
        changed("indptr", -1, entries + 1),
        with_arrays(fresh, indptr=fresh.indptr[:-1]),
        with_arrays(fresh, data=fresh.data[:-1]),
        with_arrays(fresh, indices=fresh.indices[:-1]),
        with_arrays(fresh, indices=fresh.indices.astype(float)),
    ):
        with pytest.raises(ValueError, match="sparse matrix X"):
            model.predict(damaged)
        with pytest.raises(ValueError, match="sparse matrix X"):
            FactorizationRegressor().fit(damaged, np.zeros(fresh.shape[0]))
        with pytest.raises(ValueError, match="sparse matrix X"):
            InductiveMatrixCompletion().fit(damaged, np.ones((2, 2)), [0], [0], [1.0])


def test_fit_unaligned_arrays_equal_aligned():
    X, y = make_rows(60, dim=4)
    expected = FactorizationRegressor(rank=2).fit(X, y).predict(X)
    raw = np.zeros(X.nbytes + 1, np.uint8)
    unaligned = raw[1:].view(np.float64).reshape(X.shape)
    unaligned[...] = X
    assert not unaligned.flags.aligned
    packed = np.zeros(len(y), dtype=[("flag", "i1"), ("y", "f8")])
    packed["y"] = y
    model = FactorizationRegressor(rank=2).fit(unaligned, packed["y"], sample_weight=np.ones(2 * len(y))[::2])
    np.testing.assert_array_equal(model.predict(unaligned), expected)
    model = FactorizationRegressor(rank=2).fit(pd.DataFrame(X), y)
    np.testing.assert_array_equal(model.predict(unaligned), model.predict(X))


def test_extension_rejects_invalid_arrays():
    good = np.arange(6.0).reshape(3, 2)
    for wrong in (good.astype(int), good.astype(complex), good[0], good.astype(">f8"), good.astype("f2")):
        with pytest.raises((TypeError, ValueError)):
            _core.Rows.dense(wrong)
    rows = _core.Rows.dense(good)
    for wrong in (np.ones(3, int), np.ones(3, complex), np.ones(2), np.ones((3, 1)), np.ones(6)[::2]):
        with pytest.raises((TypeError, ValueError)):
            rows.set_targets(wrong, [])
        with pytest.raises((TypeError, ValueError)):
            rows.set_weights(wrong)
    with pytest.raises(ValueError, match="labels"):
        rows.set_targets(np.ones(3), ["only one"])
    with pytest.raises(ValueError, match="column 'a'"):
        _core.Rows.table(3).add_numeric("a", np.ones(4))
    for codes in (np.zeros(3, np.int64), np.zeros(3), np.array([0, 1, 2], np.int32), np.zeros(6, np.int32)[::2]):
        with pytest.raises((TypeError, ValueError)):
            _core.Rows.table(3).add_categorical("a", codes, ["x", "y"])
    offsets, indices, values = np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)
    for wrong in (
        (offsets[::-1].copy(), indices, values, 2),
        (offsets + 1, indices, values, 2),
        (offsets, indices, values, 1),
        (offsets, indices, values, -1),
        (offsets, indices, np.ones(4)[::2], 2),
        (offsets, indices[:1], values, 2),
        (np.array([0, 2]), np.array([1, 0]), values, 2),
        (np.array([], int), indices, values, 2),
    ):
        with pytest.raises(ValueError):
            _core.Rows.sparse(*wrong)
    learner = _core.Learner("regression", 2, 0.0, None, 0.0, 1)
    for columns, numbers in (([1, 0], [1.0, 1.0]), ([-1], [1.0]), ([0], [1.0, 2.0]), ([0, 0], [1.0, 1.0])):
        with pytest.raises(ValueError):
            learner.learn(columns, numbers, 1.0)
        with pytest.raises(ValueError):
            learner.predict(columns, numbers)


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzzer_accepts_inputs_in_every_trial(seed):
    fuzzer = fuzz_arrays.search(seed, steps=1000)
    for name in fuzzer.accepted:
        assert fuzzer.accepted[name] > 0, name
