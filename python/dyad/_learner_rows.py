"""Rows of `Learner`: mappings from feature names to numbers and categories."""

from __future__ import annotations

import decimal
import math
import numbers
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

# Key and value of a feature, and whether it is a number. The key of a number is the feature name. The key of a category is
# the pair of name and category; its value is 1.
Entry = tuple[Hashable, float, bool]

# Largest magnitude of a number, as max_abs_value in include/dyad/rows.h. The square of the product of two such numbers,
# 1e280, is below the largest double, 1.8e308.
_MAX_ABS_VALUE = 1e70


def read_row(x: Mapping[Any, Any]) -> list[Entry]:
    """Validate a row and return its features.

    Raises
    ------
    TypeError
        If a value is neither a number nor hashable.
    ValueError
        If a number is not finite or too large.
    """
    entries: list[Entry] = []
    for name, value in x.items():
        if isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool):
            entries.append((name, check_number(value, f"x[{name!r}]"), True))
        elif isinstance(value, Hashable):
            entries.append(((name, value), 1.0, False))
        else:
            raise TypeError(
                f"x[{name!r}] must be a number or a hashable category, got an object of type "
                f"{type(value).__name__}; convert it to a string or a tuple."
            )
    return entries


def iterate_rows(X: Any) -> Iterator[Mapping[Any, Any]]:
    """Iterate over the rows of a table, without missing values, or over mappings."""
    if hasattr(X, "to_dicts"):  # polars
        rows = X.iter_rows(named=True)
    elif hasattr(X, "to_pylist"):  # Arrow
        rows = X.to_pylist()
    elif hasattr(X, "to_dict") and hasattr(X, "columns"):  # pandas
        rows = X.to_dict("records")
    else:
        yield from X
        return
    for row in rows:
        yield {name: value for name, value in row.items() if not _is_missing(value)}


def check_number(value: Any, name: str) -> float:
    """Return the value as a float. Raise ValueError unless it is finite and at most `_MAX_ABS_VALUE` in magnitude."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not abs(number) <= _MAX_ABS_VALUE:
        raise ValueError(
            f"{name} must be a finite number of at most {_MAX_ABS_VALUE:g} in magnitude, got {value!r}; omit features "
            "whose value is missing."
        )
    return number


def check_class(value: Any) -> None:
    """Raise TypeError or ValueError unless the value can be a class."""
    if isinstance(value, (numbers.Real, decimal.Decimal)) and not math.isfinite(value):
        raise ValueError(f"y must be a class, got {value!r}.")
    if not isinstance(value, Hashable):
        raise TypeError(f"y must be a hashable class, got an object of type {type(value).__name__}.")


def _is_missing(value: Any) -> bool:
    """Return whether a value of a table is None, NaN, NaT or NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or isinstance(value, float) and math.isnan(value)
