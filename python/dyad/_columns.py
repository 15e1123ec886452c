"""Columns of pandas and Arrow as numbers, or as categories with codes."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import numbers
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd


@dataclasses.dataclass
class Column:
    """Numbers (NaN: missing), or with ``categories`` their codes (-1: missing)."""

    values: npt.NDArray[Any]
    categories: Optional[list[str]] = None

    def is_empty(self) -> bool:
        """Whether every value is missing."""
        return bool(np.isnan(self.values).all() if self.categories is None else (self.values < 0).all())


def missing(count: int, is_category: bool) -> Column:
    return Column(np.full(count, -1, np.int32), []) if is_category else Column(np.full(count, np.nan))


def floats(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, if the library reads it where it lies: float64 or float32, aligned, in its own byte order; or a copy."""
    if values.dtype not in (np.float64, np.float32):
        return values.astype(np.float64)
    if values.flags.aligned and all(stride % values.itemsize == 0 for stride in values.strides):
        return values
    return np.array(values, order="C")


def column_of(name: str, column: Any) -> Column:
    """The values of a column of a DataFrame or an Arrow table."""
    if not isinstance(column, pd.Series):
        return _of_arrow(name, column)
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        return _of_arrow(name, pa.chunked_array(pa.array(column)) if len(column) else pa.array([], dtype.pyarrow_dtype))
    if isinstance(dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int32)
        return Column(codes, [str(value) for value in column.cat.categories])
    if isinstance(dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
        dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return Column(floats(column.to_numpy()))
        return Column(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_object_dtype(dtype):
        return _of_objects(name, column)
    if pd.api.types.is_string_dtype(dtype):
        return _of_texts(column)
    raise ValueError(_refusal(name, str(dtype)))


def _refusal(name: str, kind: str) -> str:
    return (
        f"The column {name!r} of X holds {kind}; expected numbers, text or categories. Leave it out, or convert it "
        "with astype."
    )


def _of_texts(column: Any) -> Column:
    codes, values = pd.factorize(column)
    return Column(codes.astype(np.int32), [str(value) for value in values])


def _is_number(kind: type) -> bool:
    return issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_))


def _of_objects(name: str, column: Any) -> Column:
    """Numbers if all values are numbers, else categories; both in one column are an error, as for OneHotEncoder."""
    is_there = ~pd.isna(column).to_numpy()
    values = column.to_numpy()[is_there]
    kinds = {type(value) for value in values}
    numeric = {kind for kind in kinds if _is_number(kind)}
    if numeric and numeric != kinds:
        example = {
            what: next(value for value in values if _is_number(type(value)) == what) for what in (True, False)
        }
        raise TypeError(
            f"The column {name!r} of X holds both numbers and other values, such as {example[True]!r} and "
            f"{example[False]!r}; convert it with pandas.to_numeric, or with astype(str) if its values are categories."
        )
    if numeric:
        found = np.full(len(column), np.nan)
        try:
            found[is_there] = [float(value) for value in values]
        except OverflowError:
            raise ValueError(f"The column {name!r} of X holds a number that is too large for float64.") from None
        return Column(found)
    for kind in kinds:
        if issubclass(kind, (datetime.date, datetime.timedelta, complex, dict, list, set, np.ndarray)):
            raise ValueError(_refusal(name, f"values of type {kind.__name__}"))
    return _of_texts(column)


def _of_arrow(name: str, column: Any) -> Column:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = column.cast(kind.storage_type)
        kind = column.type
    if pa.types.is_null(kind):
        return missing(len(column), is_category=False)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = _chunk(column)
        if column.null_count or not (pa.types.is_float32(kind) or pa.types.is_float64(kind)):
            column = column.cast(pa.float64(), safe=False)
        return Column(floats(column.to_numpy(zero_copy_only=False)))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        if pa.types.is_string_view(kind):
            column = column.cast(pa.large_string())
        return _of_dictionary(_chunk(column.dictionary_encode()))
    if pa.types.is_dictionary(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries()
        return _of_dictionary(_chunk(column))
    raise ValueError(_refusal(name, str(kind)))


def _chunk(column: Any) -> Any:
    """The column as one array."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _of_dictionary(chunk: Any) -> Column:
    import pyarrow as pa

    codes = chunk.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = chunk.dictionary.to_pylist()
    if None in values:  # a code of null is a missing value
        codes = np.where((codes >= 0) & np.array([value is None for value in values])[codes], np.int32(-1), codes)
    return Column(np.ascontiguousarray(codes), [str(value) for value in values])
