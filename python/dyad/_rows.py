"""Conversion of NumPy, SciPy, pandas and Arrow data to rows of the extension, without copies if possible."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from . import _columns, _core

# Conversion of the tables of other libraries to supported ones, by top-level package.
_CONVERSIONS = {
    "cudf": "X.to_pandas()",
    "dask": "X.compute()",
    "ibis": "X.to_pyarrow()",
    "modin": "X._to_pandas()",
    "polars": "X.to_arrow(), or X.collect().to_arrow() if it is a LazyFrame",
    "pyspark": "X.toPandas(), or use an estimator of dyad.spark",
    "vaex": "X.to_arrow_table()",
}


def check_supported(X: Any) -> None:
    """Raise TypeError for tables of other libraries. The message states the conversion."""
    if isinstance(X, pd.DataFrame) or _is_arrow_table(X):
        return
    package = type(X).__module__.split(".")[0]
    is_frame = (hasattr(X, "columns") and hasattr(X, "dtypes")) or any(
        hasattr(X, name) for name in ("__dataframe__", "__arrow_c_stream__")
    )
    if package in _CONVERSIONS:
        conversion = _CONVERSIONS[package]
    elif package == "pyarrow":
        conversion = "a pyarrow.Table, such as reader.read_all() or dataset.to_table()"
    elif is_frame and not isinstance(X, pd.Series):
        conversion = "a pandas.DataFrame or a pyarrow.Table"
    else:
        return
    raise TypeError(
        f"X is a {type(X).__module__}.{type(X).__qualname__}, which is not supported; pass {conversion} "
        "(supported: NumPy array, SciPy sparse matrix, pandas.DataFrame, pyarrow.Table, pyarrow.RecordBatch)."
    )


def _is_arrow_table(X: Any) -> bool:
    if not type(X).__module__.startswith("pyarrow"):
        return False
    import pyarrow as pa

    return isinstance(X, (pa.Table, pa.RecordBatch))


def is_table(X: Any) -> bool:
    """Return whether X is a pandas.DataFrame or an Arrow table, whose columns have names."""
    return isinstance(X, pd.DataFrame) or _is_arrow_table(X)


def as_frame(X: Any) -> Any:
    """Convert an Arrow table to a DataFrame; return other data unchanged."""
    return X.to_pandas() if _is_arrow_table(X) else X


def column_header(X: Any) -> Any:
    """Return a DataFrame with the column names of X, from which scikit-learn validates feature names."""
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(columns=column_names(X))


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a table. Raise ValueError if they are not unique."""
    names = [str(name) for name in (X.columns if isinstance(X, pd.DataFrame) else X.schema.names)]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"X must have unique column names; {', '.join(map(repr, repeated))} occur more than once.")
    return names


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


def from_table(X: Any, categorical: Optional[frozenset[str]] = None) -> tuple[_core.Rows, frozenset[str]]:
    """Return the rows of a table and the names of its categorical columns.

    Numeric and boolean columns are numeric; NaN and null are missing values. Columns of strings, categories and
    dictionaries are categorical.

    Parameters
    ----------
    X : pandas.DataFrame, pyarrow.Table or pyarrow.RecordBatch
        Table.
    categorical : frozenset of str, optional
        Categorical columns of a fitted model. They determine the type of columns without values.

    Returns
    -------
    rows : _core.Rows
        Rows without targets.
    categorical : frozenset of str
        Names of the categorical columns of X.
    """
    rows = _core.Rows.table(len(X))
    categorical_names = set()
    for index, name in enumerate(column_names(X)):
        column = _columns.convert_column(name, X.iloc[:, index] if isinstance(X, pd.DataFrame) else X.column(index))
        if categorical is not None and column.is_empty():
            column = _columns.make_missing_column(len(X), name in categorical)
        if column.categories is None:
            rows.add_numeric(name, column.values)
        else:
            categorical_names.add(name)
            rows.add_categorical(name, column.values, column.categories)
    return rows, frozenset(categorical_names)
