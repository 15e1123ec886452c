"""Conversion of pandas and Arrow columns to arrays of numbers or of category codes."""

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
    """Values of a column.

    Attributes
    ----------
    values : ndarray
        Numbers, where NaN is a missing value. With ``categories``: int32 codes, where -1 is a missing value.
    categories : list of str, optional
        Name of each code of a categorical column.
    """

    values: npt.NDArray[Any]
    categories: Optional[list[str]] = None

    def is_empty(self) -> bool:
        """Whether every value is missing."""
        return bool(np.isnan(self.values).all() if self.categories is None else (self.values < 0).all())


def make_missing_column(count: int, is_categorical: bool) -> Column:
    """Return a column without values."""
    return Column(np.full(count, -1, np.int32), []) if is_categorical else Column(np.full(count, np.nan))


def as_float_array(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array if the extension supports it (aligned float64 or float32, native byte order), else a copy."""
    if values.dtype not in (np.float64, np.float32):
        return values.astype(np.float64)
    if values.flags.aligned and all(stride % values.itemsize == 0 for stride in values.strides):
        return values
    return np.array(values, order="C")


def convert_column(name: str, column: Any) -> Column:
    """Convert a column of a DataFrame or of an Arrow table.

    Raises
    ------
    TypeError
        If the column contains both numbers and other values.
    ValueError
        If the type of the column is not supported.
    """
    if not isinstance(column, pd.Series):
        return _convert_arrow(name, column)
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        empty = pa.array([], dtype.pyarrow_dtype)
        return _convert_arrow(name, pa.chunked_array(pa.array(column)) if len(column) else empty)
    if isinstance(dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int32)
        return Column(codes, [str(value) for value in column.cat.categories])
    if isinstance(dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
        dtype = column.dtype
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        if isinstance(dtype, np.dtype):
            return Column(as_float_array(column.to_numpy()))
        return Column(column.to_numpy(dtype=np.float64, na_value=np.nan))
    if pd.api.types.is_object_dtype(dtype):
        return _convert_objects(name, column)
    if pd.api.types.is_string_dtype(dtype):
        return _convert_strings(column)
    raise ValueError(_unsupported_message(name, str(dtype)))


def _unsupported_message(name: str, kind: str) -> str:
    return (
        f"Column {name!r} of X contains {kind}; expected numbers, strings or categories. Drop the column, or convert "
        "it with astype."
    )


def _convert_strings(column: Any) -> Column:
    codes, values = pd.factorize(column)
    return Column(codes.astype(np.int32), [str(value) for value in values])


def _is_number(kind: type) -> bool:
    return issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_))


def _convert_objects(name: str, column: Any) -> Column:
    """Convert to numbers if all values are numbers, else to categories.

    A column of both raises TypeError, as for OneHotEncoder of scikit-learn.
    """
    is_present = ~pd.isna(column).to_numpy()
    values = column.to_numpy()[is_present]
    kinds = {type(value) for value in values}
    numeric = {kind for kind in kinds if _is_number(kind)}
    if numeric and numeric != kinds:
        number, other = (
            next(value for value in values if _is_number(type(value)) == is_number) for is_number in (True, False)
        )
        raise TypeError(
            f"Column {name!r} of X contains both numbers and other values, such as {number!r} and {other!r}; convert "
            "it with pandas.to_numeric, or with astype(str) if its values are categories."
        )
    if numeric:
        converted = np.full(len(column), np.nan)
        try:
            converted[is_present] = [float(value) for value in values]
        except OverflowError:
            raise ValueError(
                f"Column {name!r} of X contains a number beyond the range of float64; rescale the column."
            ) from None
        return Column(converted)
    for kind in kinds:
        if issubclass(kind, (datetime.date, datetime.timedelta, complex, dict, list, set, np.ndarray)):
            raise ValueError(_unsupported_message(name, f"values of type {kind.__name__}"))
    return _convert_strings(column)


def _convert_arrow(name: str, column: Any) -> Column:
    import pyarrow as pa

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        column = column.cast(kind.storage_type)
        kind = column.type
    if pa.types.is_null(kind):
        return make_missing_column(len(column), is_categorical=False)
    number_types = (pa.types.is_floating, pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
    if any(is_type(kind) for is_type in number_types):
        column = _combine_chunks(column)
        if column.null_count or not (pa.types.is_float32(kind) or pa.types.is_float64(kind)):
            column = column.cast(pa.float64(), safe=False)
        return Column(as_float_array(column.to_numpy(zero_copy_only=False)))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        if pa.types.is_string_view(kind):
            column = column.cast(pa.large_string())
        return _convert_dictionary(_combine_chunks(column.dictionary_encode()))
    if pa.types.is_dictionary(kind):
        if isinstance(column, pa.ChunkedArray):
            column = column.unify_dictionaries()
        return _convert_dictionary(_combine_chunks(column))
    raise ValueError(_unsupported_message(name, str(kind)))


def _combine_chunks(column: Any) -> Any:
    """Return the column as one array."""
    import pyarrow as pa

    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _convert_dictionary(array: Any) -> Column:
    import pyarrow as pa

    codes = array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = array.dictionary.to_pylist()
    if None in values:  # null is a category; its code is replaced by that of a missing value
        codes = np.where((codes >= 0) & np.array([value is None for value in values])[codes], np.int32(-1), codes)
    return Column(np.ascontiguousarray(codes), [str(value) for value in values])
