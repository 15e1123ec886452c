"""From what Python users have (NumPy, SciPy, pandas, Arrow) to the rows of the library, without copies where possible."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from . import _core


def is_table(X: Any) -> bool:
    """Whether X has columns with names: pandas, or Arrow."""
    return (hasattr(X, "dtypes") and hasattr(X, "columns")) or is_arrow(X)


def is_arrow(X: Any) -> bool:
    return type(X).__module__.startswith("pyarrow")


def column_names(X: Any) -> list[str]:
    names = list(X.schema.names) if is_arrow(X) else [str(name) for name in X.columns]
    if len(set(names)) < len(names):
        raise ValueError("The columns of X must have different names.")
    return names


def from_array(X: npt.NDArray[Any]) -> _core.Rows:
    return _core.Rows.dense(X)


def from_sparse(X: Any) -> _core.Rows:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return _core.Rows.sparse(X.indptr, X.indices, X.data, X.shape[1])


def from_table(X: Any) -> _core.Rows:
    """Numbers stay numbers, NaN and null among them; text, categories and dictionaries become categories."""
    rows = _core.Rows.table(len(X))
    for place, name in enumerate(column_names(X)):
        if is_arrow(X):
            _add_arrow(rows, name, X.column(place))
        else:
            _add_pandas(rows, name, X.iloc[:, place])
    return rows


def from_array_by_names(X: npt.NDArray[Any], names: list[str]) -> _core.Rows:
    """An array for a model that was learned from a table of numbers."""
    rows = _core.Rows.table(X.shape[0])
    for place, name in enumerate(names):
        rows.add_numbers(name, X[:, place])
    return rows


def _floats(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return values if values.dtype in (np.float64, np.float32) else values.astype(np.float64)


def _add_pandas(rows: _core.Rows, name: str, column: Any) -> None:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        rows.add_categories(
            name, column.cat.codes.to_numpy().astype(np.int32), [str(value) for value in column.cat.categories]
        )
    elif pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        rows.add_numbers(name, _floats(column.to_numpy(dtype=None if isinstance(dtype, np.dtype) else np.float64)))
    elif pd.api.types.is_string_dtype(dtype) or pd.api.types.is_object_dtype(dtype):
        codes, values = pd.factorize(column)
        rows.add_categories(name, codes.astype(np.int32), [str(value) for value in values])
    else:
        raise ValueError(f"The column {name!r} of X holds {dtype}; expected numbers, text or categories.")


def _add_arrow(rows: _core.Rows, name: str, column: Any) -> None:
    import pyarrow as pa

    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(chunk, pa.ChunkedArray):
        chunk = pa.concat_arrays(chunk.chunks) if chunk.num_chunks else pa.array([], type=chunk.type)
    kind = chunk.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        if chunk.null_count or pa.types.is_boolean(kind) or pa.types.is_float16(kind):
            chunk = chunk.cast(pa.float64())
        rows.add_numbers(name, _floats(chunk.to_numpy(zero_copy_only=False)))
    elif pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        if not pa.types.is_dictionary(kind):
            chunk = chunk.dictionary_encode()
        codes = chunk.indices.fill_null(-1).cast(pa.int32()).to_numpy(zero_copy_only=False)
        rows.add_categories(name, codes, [str(value) for value in chunk.dictionary.to_pylist()])
    else:
        raise ValueError(f"The column {name!r} of X holds {kind}; expected numbers, text or dictionaries.")
