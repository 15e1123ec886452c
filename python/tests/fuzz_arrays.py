"""Fuzzer of the array arguments of the extension: random types, strides, byte orders and lengths.

Each result is compared with the result for a contiguous float64 copy. An unsupported array must raise ValueError or
TypeError. With the address sanitizer (scripts/fuzz-python), a read outside of an array ends the process.

    fuzz_arrays.py [SECONDS [SEED]]
"""

import sys
import time
import warnings

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from dyad import FactorizationClassifier, FactorizationRegressor, _core

REAL_TYPES = ["f8", "f4", "f2", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">f4", ">i4", ">u8", "O"]
OTHER_TYPES = ["c8", "c16", "S4", "U4", "M8[s]", "m8[s]", "V8"]
REJECTIONS = (ValueError, TypeError)


class Fuzzer:
    """Generator of random inputs from one seed. Each `try_*` method is one trial and returns whether it was accepted."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        random = np.random.default_rng(0)
        X = random.normal(size=(60, 4))
        y = X[:, 0] - X[:, 1] * X[:, 2]
        self.dense = FactorizationRegressor(rank=2).fit(X, y)
        self.sparse = FactorizationRegressor(rank=2).fit(sp.csr_matrix(X), y)
        names = list("abcd")
        self.table = FactorizationRegressor(rank=2).fit(pd.DataFrame(X, columns=names), y)
        category = random.choice(["x", "y"], 60)
        self.mixed = FactorizationRegressor(rank=2).fit(pd.DataFrame({"a": X[:, 0], "b": category}), y)
        self.trials = [getattr(self, name) for name in dir(self) if name.startswith("try_")]
        self.accepted = {trial.__name__: 0 for trial in self.trials}
        self.rejected = {trial.__name__: 0 for trial in self.trials}

    def step(self):
        trial = self.trials[self.random.integers(len(self.trials))]
        if trial():
            self.accepted[trial.__name__] += 1
        else:
            self.rejected[trial.__name__] += 1

    # Random arrays.

    def flip(self, probability=0.5):
        """Return True with this probability."""
        return self.random.random() < probability

    def pick(self, values):
        return values[self.random.integers(len(values))]

    def numbers(self, shape, dtype):
        """Return small integers, which every real type represents exactly."""
        return self.random.integers(0, 2, size=shape).astype(dtype) if dtype == "?" else (
            self.random.integers(0, 100, size=shape).astype(dtype)
        )

    def any_type(self, real=0.8):
        """Return a real type with the probability `real`, else another type."""
        return self.pick(REAL_TYPES) if self.flip(real) else self.pick(OTHER_TYPES)

    def with_random_layout(self, values):
        """Return the same values with other strides, orders or alignments, or as a broadcast of the first value."""
        layout = self.random.integers(8)
        if layout == 0:
            values = np.asfortranarray(values)
        elif layout == 1:  # every k-th entry along each axis of a larger array
            steps = [int(self.pick([-3, -2, -1, 1, 2, 3])) for _ in values.shape]
            wide = np.zeros([max(1, size * abs(step)) for size, step in zip(values.shape, steps)], values.dtype)
            slices = tuple(slice(None, None, step) for step in steps)
            view = wide[(*slices, ...)][(*(slice(size) for size in values.shape), ...)]
            if view.shape == values.shape:
                view[...] = values
                values = view
        elif layout == 2 and values.dtype.kind not in "OV":  # one byte after an aligned address
            raw = np.zeros(values.nbytes + 1, np.uint8)
            view = raw[1:].view(np.uint8)[: values.nbytes].view(values.dtype).reshape(values.shape)
            view[...] = values
            values = view
        elif layout == 3 and values.dtype.kind not in "OV":  # a field of packed records
            packed = np.zeros(values.shape, dtype=[("before", "i1"), ("values", values.dtype)])
            packed["values"] = values
            values = packed["values"]
        elif layout == 4 and values.size:  # a broadcast of one entry
            values = np.broadcast_to(values.ravel()[:1].reshape([1] * values.ndim), values.shape)
        elif layout == 5:
            values = values.copy()
            values.flags.writeable = False
        elif layout == 6 and values.ndim == 2:
            values = np.ascontiguousarray(values.T).T
        return values

    def array(self, shape, dtype=None):
        return self.with_random_layout(self.numbers(shape, dtype or self.any_type()))

    def shape(self, columns=4):
        """Return a random shape, usually with the number of columns of the model."""
        rows = int(self.random.integers(0, 9))
        if self.flip(0.85):
            return rows, columns
        return tuple(self.random.integers(0, 6, size=self.random.integers(0, 4)))

    def with_invalid_value(self, values):
        """Return the values, sometimes with NaN or infinity."""
        if values.dtype.kind == "f" and values.size and values.flags.writeable and self.flip(0.1):
            values[tuple(self.random.integers(size) for size in values.shape)] = self.pick([np.nan, np.inf, -np.inf])
        return values

    # Comparison.

    def compare(self, function, given, copy):
        """Return whether `given` is accepted. Its result must equal the result for the contiguous copy."""
        try:
            found = function(given)
        except REJECTIONS:
            found = None
        try:
            expected = function(copy)
        except REJECTIONS:
            expected = None
        if found is None:
            return False
        assert expected is not None, f"accepted {given!r}, but not its copy"
        np.testing.assert_array_equal(found, expected)
        return True

    @staticmethod
    def copy_of(values):
        """Return a contiguous copy, as float64 for real types."""
        return np.array(values, dtype=np.float64, order="C") if values.dtype.kind in "fiub?O" else values.copy()

    # Trials of the estimators.

    def try_predict_dense(self):
        X = self.with_invalid_value(self.array(self.shape()))
        accepted = self.compare(self.dense.predict, X, self.copy_of(X))
        if X.ndim == 2 and X.shape[1] == 4 and len(X) and X.dtype.kind in "fiub" and np.isfinite(X.astype(float)).all():
            assert accepted, f"rejected {X!r} with strides {X.strides}"
        return accepted

    def try_predict_table(self):
        rows = int(self.random.integers(1, 9))
        columns = {name: self.with_invalid_value(self.array(rows, self.pick(REAL_TYPES))) for name in "abcd"}
        frame = pd.DataFrame(columns, copy=False)
        copy = pd.DataFrame({name: self.copy_of(values) for name, values in columns.items()})
        return self.compare(self.table.predict, frame, copy)

    def try_predict_sparse(self):
        """Predict a sparse matrix with arrays of other types and layouts, or with invalid arrays."""
        kind = self.pick(["csr", "csc", "coo", "bsr"])
        X = sp.random(int(self.random.integers(1, 9)), 4, 0.5, format="csr", rng=self.random).asformat(kind)
        copy = X.toarray()
        names = ["data", "row", "col"] if kind == "coo" else ["data", "indices", "indptr"]
        for name in names:
            values = getattr(X, name)
            dtype = self.any_type() if name == "data" else self.pick(["i4", "i8", "u4", "u2", ">i4"])
            if name == "data":
                dtype = self.pick(["f8", "f4", ">f8", "g", "c16"])
                values = values.astype(np.float32)  # all of these types represent the values exactly
            try:
                replaced = values.astype(dtype)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
                    strided = np.empty_like(replaced, shape=(2 * len(replaced),) + replaced.shape[1:])
                    strided[::2] = replaced
                    replaced = self.pick([replaced, strided[::2], replaced[::-1].copy()[::-1]])
                    if replaced.dtype.kind == "c" and self.flip():
                        replaced = replaced.real
                if kind == "coo" and name != "data":
                    X.coords = tuple(replaced if axis == name else getattr(X, axis) for axis in ("row", "col"))
                else:
                    setattr(X, name, replaced)
            except REJECTIONS:
                return False
        copy = copy.astype(np.float32).astype(np.float64)
        if self.flip(0.3):
            X, copy = self.with_damage(X, names), None
        try:
            found = self.sparse.predict(X)
        except REJECTIONS:
            found = None
        if found is not None and copy is not None:
            np.testing.assert_array_equal(found, self.sparse.predict(sp.csr_matrix(copy)))
        return found is not None

    def with_damage(self, X, names):
        """Change one entry of one array, or truncate one array."""
        name = self.pick(names)
        if name in ("row", "col"):
            name = "data"
        values = getattr(X, name).copy()
        if len(values) and self.flip():
            wrong = np.array(self.pick([-1, 3, 1000, 2**31 - 1, -(2**31)]))
            values[self.random.integers(len(values))] = wrong.astype(values.dtype)
        else:
            values = values[: self.random.integers(len(values) + 1)]
        setattr(X, name, values)
        return X

    def try_fit(self):
        """Fit random targets and weights in one of five trials, because training is slow."""
        if self.flip(0.8):
            return True
        X = self.random.normal(size=(12, 2))
        y, weights = self.array(self.pick([12, 11, (12, 1)])), self.array(self.pick([12, 13]))
        make = self.pick([FactorizationRegressor, FactorizationClassifier])

        def fitted(both):
            return make(rank=1, solver="kalman", n_jobs=1).fit(X, both[0], sample_weight=both[1]).predict(X)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            if make is FactorizationClassifier:
                return self.compare(fitted, (y, weights), (y.copy(), self.copy_of(weights)))
            return self.compare(fitted, (y, weights), (self.copy_of(y), self.copy_of(weights)))

    # Trials of the extension, which does not copy arrays.

    def try_core_dense(self):
        X = self.array(self.shape(), self.pick(["f8", "f4", ">f8", "i4", "c16", "O", "f2"]))
        return self.compare(lambda values: _core.hash_rows(_core.Rows.dense(values)), X, self.copy_of(X))

    def try_core_sparse(self):
        rows, columns = int(self.random.integers(0, 6)), int(self.random.integers(0, 6))
        X = sp.random(rows, columns, 0.5, format="csr", rng=self.random)
        arrays = [X.indptr.astype(self.pick(["i4", "i8", "u4"])), X.indices.astype(self.pick(["i4", "i8"])), X.data]
        if self.flip():
            index = self.random.integers(3)
            arrays[index] = self.array(int(self.random.integers(0, 9)), self.pick(["i4", "i8", "f8", "f4", "u8", ">i4"]))
        arrays = [self.with_random_layout(values) for values in arrays]
        if self.flip(0.2):
            columns = int(self.pick([-1, 0, 1, 2**31, 2**40]))
        try:
            rows = _core.Rows.sparse(*arrays, columns)
        except REJECTIONS:
            return False
        expected = sp.csr_matrix((arrays[2], arrays[1], arrays[0]), shape=(len(arrays[0]) - 1, columns)).toarray()
        np.testing.assert_array_equal(_core.hash_rows(rows), _core.hash_rows(_core.Rows.dense(expected * 1.0)))
        return True

    def try_core_columns(self):
        count = int(self.random.integers(0, 9))
        rows = _core.Rows.table(count)
        try:
            rows.add_numeric("a", self.array(self.pick([count, count, count + 1]), self.pick(["f8", "f4", "i8", ">f8"])))
            codes = self.array(self.pick([count, count, count + 1]), self.pick(["i4", "i4", "i8", "f8"]))
            rows.add_categorical("b", codes, ["x", "y"] if self.flip(0.3) else [str(code) for code in range(100)])
            return bool(np.isfinite(self.mixed._predictors[0].predict(rows)).all())
        except REJECTIONS:
            return False

    def try_core_targets(self):
        count = int(self.random.integers(0, 9))
        y = self.array(self.pick([count, count, count + 1, (count, 1)]), self.pick(["f8", "f8", "f4", "i8", ">f8", "c16"]))
        weights = self.array(self.pick([count, count + 1]), self.pick(["f8", "i4"]))
        labels = self.pick([[], ["0", "1"], ["0"]])

        def hashes(values):
            rows = _core.Rows.dense(np.ones((count, 4)))
            rows.set_targets(values, labels)
            return _core.hash_rows(rows)

        accepted = self.compare(hashes, y, self.copy_of(y))
        rows = _core.Rows.dense(np.ones((count, 4)))
        worker = _core.Worker(_core.start_workers(self.dense._models[0]))
        numbers = np.arange(count).astype(self.pick(["u8", "i8", "f8"]))
        try:
            rows.set_weights(weights)
            worker.add_rows(rows, self.with_random_layout(numbers)[: self.pick([count, count // 2])])
        except (*REJECTIONS, RuntimeError):
            pass
        return accepted

    def try_learner(self):
        learner = _core.Learner("regression", 2, 0.0, None, 0.0, 1)
        for _ in range(self.random.integers(60)):
            count = self.random.integers(4)
            columns = self.random.integers(-1 if self.flip(0.1) else 0, 40, size=count)
            columns = columns if self.flip(0.1) else np.unique(columns)
            values = self.random.normal(size=len(columns) + (self.flip(0.05)))
            values[: self.flip(0.05)] = self.pick([np.nan, np.inf, 1e300])
            try:
                learner.learn(columns.tolist(), values.tolist(), float(self.pick([1.0, 2.0, np.nan, 1e300])))
            except REJECTIONS:
                continue
        return all(np.isfinite(learner.predict([0, 39], [1.0, 1.0]))) or learner.rows() < 2


def search(seed, seconds=np.inf, steps=np.inf):
    """Run trials for a number of seconds or steps. Return the fuzzer."""
    fuzzer = Fuzzer(seed)
    end = time.monotonic() + seconds
    step = 0
    while step < steps and time.monotonic() < end:
        try:
            fuzzer.step()
        except BaseException:
            print(f"fuzz_arrays: seed {seed}, step {step}", file=sys.stderr)
            raise
        step += 1
    return fuzzer


if __name__ == "__main__":
    duration = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    found = search(int(sys.argv[2]) if len(sys.argv) > 2 else 1, seconds=duration)
    for name in found.accepted:
        print(f"{name:20} {found.accepted[name]:7} accepted {found.rejected[name]:7} rejected")
