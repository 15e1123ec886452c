"""Arrays of all types, strides, orders and lengths: the same results as from contiguous float64, or an error."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import fuzz_arrays
from conftest import made, ratings
from dyad import FactorizationRegressor, InductiveMatrixCompletion, _core


@pytest.fixture(scope="module")
def model():
    return FactorizationRegressor(rank=2).fit(*ratings(500))


@pytest.fixture
def fresh():
    X, _ = ratings(40, seed=1)
    X.data = np.random.default_rng(2).normal(size=len(X.data))
    return X


def replaced(X, **arrays):
    """The matrix with some of its arrays set behind the back of SciPy."""
    X = X.copy()
    for name, values in arrays.items():
        setattr(X, name, values)
    return X


def every_second(values):
    wide = np.zeros(2 * len(values), values.dtype)
    wide[1::2] = 7
    wide[::2] = values
    return wide[::2]


def test_strided_arrays_of_sparse_rows(model, fresh):
    expected = model.predict(fresh)
    np.testing.assert_array_equal(model.predict(fresh.astype(complex).real), expected)
    for name in ("data", "indices", "indptr"):
        values = getattr(fresh, name)
        for changed in (every_second(values), values[::-1].copy()[::-1], values.astype(values.dtype.newbyteorder())):
            np.testing.assert_array_equal(model.predict(replaced(fresh, **{name: changed})), expected)
    for kind in ("i8", "u4"):
        changed = replaced(fresh, indices=fresh.indices.astype(kind), indptr=fresh.indptr.astype(kind))
        np.testing.assert_array_equal(model.predict(changed), expected)


def test_fit_reads_strided_arrays():
    X, y = ratings(300)
    strided = replaced(X, data=every_second(X.data), indices=every_second(X.indices))
    expected = FactorizationRegressor(rank=2).fit(X, y).predict(X)
    np.testing.assert_array_equal(FactorizationRegressor(rank=2).fit(strided, y).predict(X), expected)


@pytest.mark.parametrize("layout", ["csc", "coo", "bsr", "lil", "dok", "dia"])
def test_layouts_of_sparse_matrices(model, fresh, layout):
    for made_of in (sp.csr_matrix, sp.csr_array):
        np.testing.assert_array_equal(model.predict(made_of(fresh).asformat(layout)), model.predict(fresh))


def test_unsorted_and_repeated_indices(model, fresh):
    expected = model.predict(fresh)
    order = np.arange(len(fresh.data)).reshape(-1, 2)[:, ::-1].ravel()  # two entries in each row
    unsorted = replaced(fresh, data=fresh.data[order], indices=fresh.indices[order])
    unsorted.has_sorted_indices = unsorted.has_canonical_format = True  # which is wrong
    np.testing.assert_array_equal(model.predict(unsorted), expected)
    halves = sp.csr_matrix(
        (np.repeat(fresh.data / 2, 2), np.repeat(fresh.indices, 2), 2 * fresh.indptr), shape=fresh.shape
    )
    halves.has_canonical_format = True  # which is wrong
    np.testing.assert_allclose(model.predict(halves), expected, rtol=1e-12)
    longer = replaced(fresh, data=np.append(fresh.data, 5.0), indices=np.append(fresh.indices, 9999))
    np.testing.assert_array_equal(model.predict(longer), expected)  # entries beyond indptr are not part of it


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_damaged_sparse_matrices_are_refused(model, fresh, layout):
    fresh = fresh.asformat(layout)
    entries = len(fresh.data)

    def changed(name, place, value):
        values = getattr(fresh, name).copy()
        values[place] = value
        return replaced(fresh, **{name: values})

    for damaged in (
        changed("indices", 3, -1),
        changed("indices", 3, 10**6),
        changed("indptr", 0, 1),
        changed("indptr", 2, 10**6),
        changed("indptr", 2, -5),
        changed("indptr", -1, entries + 1),
        replaced(fresh, indptr=fresh.indptr[:-1]),
        replaced(fresh, data=fresh.data[:-1]),
        replaced(fresh, indices=fresh.indices[:-1]),
        replaced(fresh, indices=fresh.indices.astype(float)),
    ):
        with pytest.raises(ValueError, match="sparse matrix X is invalid"):
            model.predict(damaged)
        with pytest.raises(ValueError, match="sparse matrix X is invalid"):
            FactorizationRegressor().fit(damaged, np.zeros(fresh.shape[0]))
        with pytest.raises(ValueError, match="invalid"):
            InductiveMatrixCompletion().fit(damaged, np.ones((2, 2)), [0], [0], [1.0])


def test_unaligned_and_packed_arrays():
    X, y = made(60, dim=4)
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


def test_the_extension_refuses_what_it_cannot_read():
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
    with pytest.raises(ValueError, match="two"):
        rows.set_targets(np.ones(3), ["only one"])
    with pytest.raises(ValueError, match="one entry for each"):
        _core.Rows.table(3).add_numbers("a", np.ones(4))
    for codes in (np.zeros(3, np.int64), np.zeros(3), np.array([0, 1, 2], np.int32), np.zeros(6, np.int32)[::2]):
        with pytest.raises((TypeError, ValueError)):
            _core.Rows.table(3).add_categories("a", codes, ["x", "y"])
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
def test_random_arrays(seed):
    fuzzer = fuzz_arrays.search(seed, steps=1000)
    for name in fuzzer.accepted:
        assert fuzzer.accepted[name] > 0, name
