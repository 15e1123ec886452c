"""Conversion of NumPy arrays and SciPy matrices to rows of the extension, without copies if possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from . import _columns, _core

def has_missing(X: npt.NDArray[Any]) -> bool:
    """Return whether an array contains NaN."""
    # A finite sum excludes NaN without an array of booleans.
    return bool(np.isnan(X.sum()) and np.isnan(X).any())


def from_array(X: npt.NDArray[Any]) -> _core.Rows:
    """Return the rows of a matrix."""
    return _core.Rows.dense(_columns.as_float_array(X))


def check_sparse(X: Any) -> None:
    """Raise ValueError if the arrays of a sparse matrix are inconsistent.

    Compiled code of SciPy does not check them, and would read outside of the arrays.
    """
    if X.format == "coo":
        for name, indices, size in zip(("row", "col"), (X.row, X.col), X.shape):
            _check_indices(name, indices, size)
            _require(len(indices) == len(X.data), f"{name} and data must have the same length")
    if X.format not in ("csr", "csc", "bsr"):
        return
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = X.shape[0] // blocks[0], X.shape[1] // blocks[1]
    major, minor = (columns, rows) if X.format == "csc" else (rows, columns)
    offsets = np.asarray(X.indptr)
    _check_integers("indptr", offsets)
    _require(len(offsets) == major + 1, f"indptr must have {major + 1} entries, got {len(offsets)}")
    _require(offsets[0] == 0, f"indptr must start at 0, got {offsets[0]}")
    _require(bool((offsets[1:] >= offsets[:-1]).all()), "indptr must not decrease")
    count = min(len(X.indices), len(X.data))
    _require(offsets[-1] <= count, f"indptr must not exceed the number of entries, {count}, got {offsets[-1]}")
    _check_indices("indices", X.indices[: offsets[-1]], minor)


def _check_integers(name: str, values: Any) -> None:
    values = np.asarray(values)
    is_valid = values.ndim == 1 and np.issubdtype(values.dtype, np.integer)
    _require(is_valid, f"{name} must be a one-dimensional array of integers")


def _check_indices(name: str, indices: Any, size: int) -> None:
    _check_integers(name, indices)
    if len(indices):
        lowest, highest = np.min(indices), np.max(indices)
        wrong = lowest if lowest < 0 else highest
        _require(lowest >= 0 and highest < size, f"{name} must be in [0, {size}), got {wrong}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"The sparse matrix X is invalid: {message}.")


def from_sparse(X: Any) -> _core.Rows:
    """Return the rows of a CSR matrix. Unsorted indices are sorted, and duplicate entries are added, in a copy."""
    check_sparse(X)
    entries = int(X.indptr[-1])
    arrays = (_columns.as_float_array(X.data[:entries]), X.indices[:entries], X.indptr)
    # A new matrix computes has_canonical_format from its arrays. The flag of X is wrong if its arrays were replaced.
    X = sp.csr_matrix(arrays, shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    offsets, indices = _as_index_array(X.indptr), _as_index_array(X.indices)
    return _core.Rows.sparse(offsets, indices, np.ascontiguousarray(X.data), X.shape[1])


def _as_index_array(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype not in (np.int32, np.int64):
        values = values.astype(np.int64)
    return np.require(values, requirements=["C", "A"])
