"""Columns of tables: conversion of pandas and Arrow columns to arrays of numbers, category codes or dates."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import numbers
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _core


# Largest magnitude up to which float64 represents all integers.
_MAX_EXACT_INTEGER = 2.0**53


@dataclasses.dataclass
class Column:
    """Values of a column.

    Attributes
    ----------
    values : ndarray
        Numbers, where NaN is a missing value. With ``categories``: int32 codes, where -1 is a missing value. Dates:
        datetime64[us] in local time, where NaT is a missing value.
    categories : list of str, optional
        Name of each code of a categorical column.
    is_integer : bool
        Whether the type of the column is an integer type.
    """

    values: npt.NDArray[Any]
    categories: Optional[list[str]] = None
    is_integer: bool = False

    @property
    def is_date(self) -> bool:
        """Whether the values are dates."""
        return self.values.dtype.kind == "M"

    def is_empty(self) -> bool:
        """Whether every value is missing."""
        if self.categories is not None:
            return bool((self.values < 0).all())
        return bool((np.isnat(self.values) if self.is_date else np.isnan(self.values)).all())

    def to_categories(self) -> Column:
        """Return a numeric column as a categorical one. The name of a category is the shortest text of its number."""
        if self.categories is not None:
            return self
        is_present = ~np.isnan(self.values)
        found, codes = np.unique(self.values[is_present], return_inverse=True)
        if len(found) and np.abs(found).max() > _MAX_EXACT_INTEGER:
            raise ValueError(
                f"a categorical column of numbers contains {found[np.abs(found).argmax()]:.17g}; numbers beyond 2^53 are "
                "not distinct, convert the column to strings"
            )
        result = np.full(len(self.values), -1, np.int32)
        result[is_present] = codes
        return Column(result, [f"{number:.0f}" if number.is_integer() else repr(number) for number in found.tolist()])


def concatenate(columns: list[Column]) -> Column:
    """Return the values of several columns of the same kind as one column."""
    if all(column.categories is None for column in columns):
        is_integer = all(column.is_integer for column in columns)
        return Column(np.concatenate([column.values for column in columns]), is_integer=is_integer)
    categories: dict[str, int] = {}
    codes = []
    for column in columns:
        column = make_missing_column(len(column.values), True) if column.is_empty() else column.to_categories()
        names = column.categories or []
        mapping = np.array([categories.setdefault(name, len(categories)) for name in names] + [-1], np.int32)
        codes.append(mapping[column.values])
    return Column(np.concatenate(codes), list(categories))


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


def convert_series(name: str, column: Any) -> Column:
    """Convert a column of a DataFrame of pandas.

    Raises
    ------
    TypeError
        If the column contains both numbers and other values.
    ValueError
        If the type of the column is not supported.
    """
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        import pyarrow as pa

        table = pa.Table.from_arrays([pa.chunked_array([pa.array(column)], dtype.pyarrow_dtype)], names=[name])
        content = _core.read_arrow_stream(table.__arrow_c_stream__())
        assert content is not None  # the stream is one of record batches
        return convert_arrow(*content[1][0])
    if isinstance(dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int32)
        return Column(codes, [str(value) for value in column.cat.categories])
    if isinstance(dtype, pd.SparseDtype):
        column = column.sparse.to_dense()
        dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype):
        local = column.dt.tz_localize(None) if getattr(dtype, "tz", None) is not None else column
        return Column(local.to_numpy().astype("datetime64[us]"))
    if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
        is_integer = pd.api.types.is_integer_dtype(dtype)
        if isinstance(dtype, np.dtype):
            return Column(as_float_array(column.to_numpy()), is_integer=is_integer)
        return Column(column.to_numpy(dtype=np.float64, na_value=np.nan), is_integer=is_integer)
    if pd.api.types.is_object_dtype(dtype):
        return _convert_objects(name, column)
    if pd.api.types.is_string_dtype(dtype):
        return _convert_strings(column)
    raise ValueError(_unsupported_message(name, str(dtype)))


def convert_arrow(name: str, kind: str, values: Any, categories: list[str], type_name: str) -> Column:
    """Convert a column of `_core.read_arrow_stream`. Raise ValueError if its type is not supported."""
    if kind == "unsupported":
        raise ValueError(_unsupported_message(name, f"values of the Arrow type {type_name!r}"))
    if kind == "category":
        return Column(values, categories)
    if kind != "date":
        return Column(values, is_integer=kind == "integer")
    dates = values.view("datetime64[us]")
    zone = type_name.partition(":")[2]
    if zone:
        import pandas as pd

        dates = pd.DatetimeIndex(dates, tz="UTC").tz_convert(zone).tz_localize(None).to_numpy().astype("datetime64[us]")
    return Column(dates)


def _unsupported_message(name: str, kind: str) -> str:
    return (
        f"Column {name!r} of X contains {kind}; expected numbers, strings or categories. Drop the column, or convert "
        "it with astype."
    )


def _convert_strings(column: Any) -> Column:
    import pandas as pd

    codes, values = pd.factorize(column)
    return Column(codes.astype(np.int32), [str(value) for value in values])


def _is_number(kind: type) -> bool:
    return issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_))


def _convert_objects(name: str, column: Any) -> Column:
    """Convert to numbers if all values are numbers, else to categories.

    A column of both raises TypeError, as for OneHotEncoder of scikit-learn.
    """
    is_present = column.notna().to_numpy()
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
    if kinds and all(issubclass(kind, datetime.date) for kind in kinds):
        return Column(column.astype("datetime64[us]").to_numpy())
    for kind in kinds:
        if issubclass(kind, (datetime.date, datetime.timedelta, complex, dict, list, set, np.ndarray)):
            raise ValueError(_unsupported_message(name, f"values of type {kind.__name__}"))
    return _convert_strings(column)
