"""From what Python users have (NumPy, SciPy, pandas, Arrow) to the rows of the library, without copies where possible."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp

from . import _columns, _core

# How rows of other libraries are converted, by the first part of their module's name.
_CONVERSIONS = {
    "cudf": "X.to_pandas()",
    "dask": "X.compute()",
    "ibis": "X.to_pyarrow()",
    "modin": "X._to_pandas()",
    "polars": "X.to_arrow(), or X.collect().to_arrow() if it is a LazyFrame",
    "pyspark": "X.toPandas(), or fit it where it is with dyad.spark",
    "vaex": "X.to_arrow_table()",
}


def require_supported(X: Any) -> None:
    """Raise TypeError for tables that must be converted first."""
    if isinstance(X, pd.DataFrame) or _is_arrow_table(X):
        return
    root = type(X).__module__.split(".")[0]
    is_frame = (hasattr(X, "columns") and hasattr(X, "dtypes")) or any(
        hasattr(X, name) for name in ("__dataframe__", "__arrow_c_stream__")
    )
    if root in _CONVERSIONS:
        conversion = _CONVERSIONS[root]
    elif root == "pyarrow":
        conversion = "pyarrow.Table, such as reader.read_all() or dataset.to_table()"
    elif is_frame and not isinstance(X, pd.Series):
        conversion = "a pandas.DataFrame or a pyarrow.Table"
    else:
        return
    raise TypeError(
        f"X is a {type(X).__module__}.{type(X).__qualname__}, which is not supported; pass {conversion} "
        "(supported are NumPy arrays, SciPy sparse matrices, pandas.DataFrame, pyarrow.Table and RecordBatch)."
    )


def _is_arrow_table(X: Any) -> bool:
    if not type(X).__module__.startswith("pyarrow"):
        return False
    import pyarrow as pa

    return isinstance(X, (pa.Table, pa.RecordBatch))


def is_table(X: Any) -> bool:
    """Whether X has columns with names: pandas, or Arrow."""
    return isinstance(X, pd.DataFrame) or _is_arrow_table(X)


def as_frame(X: Any) -> Any:
    """The table as a DataFrame; other rows as they are."""
    return X.to_pandas() if _is_arrow_table(X) else X


def header(X: Any) -> Any:
    """What scikit-learn needs to check the names of columns: a DataFrame with those of X."""
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(columns=column_names(X))


def column_names(X: Any) -> list[str]:
    names = [str(name) for name in (X.columns if isinstance(X, pd.DataFrame) else X.schema.names)]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"The columns of X must have different names; X has several {', '.join(map(repr, repeated))}.")
    return names


def from_array(X: npt.NDArray[Any]) -> _core.Rows:
    return _core.Rows.dense(_columns.floats(X))


def require_valid_sparse(X: Any) -> None:
    """Raise ValueError for sparse matrices whose arrays do not agree, before SciPy's compiled code reads them."""
    if X.format == "coo":
        for name, places, size in zip(("row", "col"), (X.row, X.col), X.shape):
            _require_indices(name, places, size)
            _require(len(places) == len(X.data), f"{name} and data must have the same length")
    if X.format not in ("csr", "csc", "bsr"):
        return
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    rows, columns = X.shape[0] // blocks[0], X.shape[1] // blocks[1]
    major, minor = (columns, rows) if X.format == "csc" else (rows, columns)
    offsets = np.asarray(X.indptr)
    _require_integers("indptr", offsets)
    _require(len(offsets) == major + 1, f"indptr must have {major + 1} entries, got {len(offsets)}")
    _require(offsets[0] == 0, f"indptr must begin with 0, got {offsets[0]}")
    _require(bool((offsets[1:] >= offsets[:-1]).all()), "indptr must not decrease")
    count = min(len(X.indices), len(X.data))
    _require(offsets[-1] <= count, f"indptr ends at {offsets[-1]}, beyond the {count} entries")
    _require_indices("indices", X.indices[: offsets[-1]], minor)


def _require_integers(name: str, values: Any) -> None:
    values = np.asarray(values)
    _require(values.ndim == 1 and np.issubdtype(values.dtype, np.integer), f"{name} must be integers in one dimension")


def _require_indices(name: str, indices: Any, size: int) -> None:
    _require_integers(name, indices)
    if len(indices):
        least, most = np.min(indices), np.max(indices)
        _require(least >= 0 and most < size, f"{name} must lie in [0, {size}), got {least if least < 0 else most}")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"The sparse matrix X is invalid: {what}.")


def from_sparse(X: Any) -> _core.Rows:
    """Rows of a CSR matrix. Unsorted indices are sorted, and entries of one place added, in a copy."""
    require_valid_sparse(X)
    entries = int(X.indptr[-1])
    arrays = (_columns.floats(X.data[:entries]), X.indices[:entries], X.indptr)
    # A new matrix: flags of the old one may be those of arrays that it had before.
    X = sp.csr_matrix(arrays, shape=X.shape)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return _core.Rows.sparse(_integers(X.indptr), _integers(X.indices), np.ascontiguousarray(X.data), X.shape[1])


def _integers(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype not in (np.int32, np.int64):
        values = values.astype(np.int64)
    return np.require(values, requirements=["C", "A"])


def from_table(X: Any, categorical: Optional[frozenset[str]] = None) -> tuple[_core.Rows, frozenset[str]]:
    """Rows of a table, and the names of its columns of categories.

    Numbers stay numbers, with NaN and null among them. Text, categories and dictionaries become categories.

    Parameters
    ----------
    categorical : frozenset of str, optional
        The columns of categories of the model, if there is one. They decide about columns without any value.
    """
    rows = _core.Rows.table(len(X))
    found = set()
    for place, name in enumerate(column_names(X)):
        column = X.iloc[:, place] if isinstance(X, pd.DataFrame) else X.column(place)
        values = _columns.column_of(name, column)
        if categorical is not None and values.is_empty():
            values = _columns.missing(len(X), name in categorical)
        if values.categories is None:
            rows.add_numbers(name, values.values)
        else:
            found.add(name)
            rows.add_categories(name, values.values, values.categories)
    return rows, frozenset(found)
