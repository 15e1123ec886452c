"""Roles of the input columns: numeric, categorical or date. They are determined in ``fit``."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any, Literal, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _core
from ._columns import Column, make_missing_column
from ._tables import Table

CategoricalFeatures = Union[Literal["from_dtype"], npt.ArrayLike]

_MICROSECONDS_PER_DAY = 86_400_000_000
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
# Weekday of 1970-01-01, a Thursday.
_EPOCH_WEEKDAY = 3

# The test for identifiers needs this number of distinct values, and on average this number of rows for each.
_MIN_IDENTIFIER_VALUES = 30
_MIN_ROWS_PER_IDENTIFIER = 2
# Number of rows of the test for identifiers.
_MAX_IDENTIFIER_ROWS = 100_000
# Evidence for differences between the values of a column, in standard errors, and the largest share of their variance
# that neighboring values of an identifier have in common.
_MIN_IDENTIFIER_Z_SCORE = 6.0
_MAX_SHARED_VARIANCE = 0.5


@dataclasses.dataclass
class ColumnEncoding:
    """Roles of the columns of a fitted table model.

    Attributes
    ----------
    names : list of str
        Names of the columns of X.
    categorical : frozenset of str
        Categorical columns.
    dates : dict of str to bool
        Columns of dates, and whether they have a feature for the time of day.
    """

    names: list[str]
    categorical: frozenset[str]
    dates: dict[str, bool]

    @classmethod
    def fit(cls, table: Table, declared: frozenset[str], date_encoding: Optional[str]) -> ColumnEncoding:
        """Determine the roles from the training rows. ``declared``: categorical columns besides those by type."""
        categorical, dates = set(declared), {}
        for name, column in zip(table.names, table.columns):
            if column.is_date:
                if date_encoding is None:
                    raise ValueError(
                        f"Column {name!r} of X contains dates; set date_encoding='calendar' to use calendar features "
                        "(trend, day of the year, weekday, hour), or drop the column."
                    )
                if name in declared:
                    raise ValueError(f"Column {name!r} of X contains dates, which categorical_features must not name.")
                times = column.values[~np.isnat(column.values)].astype(np.int64)
                dates[name] = bool((times % _MICROSECONDS_PER_DAY).any())
            elif column.categories is not None:
                categorical.add(name)
        return cls(table.names, frozenset(categorical), dates)

    def encode(self, table: Table, is_fit: bool) -> EncodedRows:
        """Convert the columns of a table to columns of the model."""
        encoded: list[tuple[str, str, Column]] = []
        for name, column in zip(table.names, table.columns):
            if name in self.dates:
                encoded += [(name, part, values) for part, values in self._calendar_columns(name, column)]
            elif column.is_date:
                raise ValueError(f"Column {name!r} of X contains dates; it contained no dates in fit.")
            elif column.is_empty() and not is_fit:
                encoded.append((name, name, make_missing_column(len(table), name in self.categorical)))
            else:
                encoded.append((name, name, column.to_categories() if name in self.categorical else column))
        return EncodedRows(len(table), encoded)

    def model_columns(self, name: str) -> list[str]:
        """Return the names of the columns of the model that are computed from a column of X."""
        if name not in self.dates:
            return [name]
        parts = ["days", "day_of_year", "weekday"] + (["hour"] if self.dates[name] else [])
        return [f"{name}.{part}" for part in parts]

    def _calendar_columns(self, name: str, column: Column) -> list[tuple[str, Column]]:
        """Return the calendar features of a column of dates."""
        if column.is_empty():
            column = Column(np.full(len(column.values), "NaT", "datetime64[us]"))
        if not column.is_date:
            raise ValueError(f"Column {name!r} of X must contain dates, as in fit.")
        is_missing = np.isnat(column.values)
        times = np.where(is_missing, np.datetime64(0, "us"), column.values)
        microseconds = times.astype(np.int64)
        days = times.astype("datetime64[D]")
        day_of_year = (days - times.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.int64) + 1
        weekday = (days.astype(np.int64) + _EPOCH_WEEKDAY) % 7
        hours = microseconds % _MICROSECONDS_PER_DAY / (_MICROSECONDS_PER_DAY / 24)

        def numeric(values: npt.NDArray[Any]) -> Column:
            return Column(np.where(is_missing, np.nan, values))

        weekdays = Column(np.where(is_missing, -1, weekday).astype(np.int32), _WEEKDAYS)
        trend = numeric(microseconds / _MICROSECONDS_PER_DAY)
        return list(zip(self.model_columns(name), [trend, numeric(day_of_year), weekdays, numeric(hours)]))


@dataclasses.dataclass
class EncodedRows:
    """Columns of the model, each with the column of X from which it was computed.

    Attributes
    ----------
    count : int
        Number of rows.
    columns : list of (str, str, Column)
        Name of the column of X, name of the column of the model, and values.
    """

    count: int
    columns: list[tuple[str, str, Column]]

    def to_rows(self) -> _core.Rows:
        """Return rows for the extension."""
        rows = _core.Rows.table(self.count)
        for _, name, column in self.columns:
            if column.categories is None:
                rows.add_numeric(name, column.values)
            else:
                rows.add_categorical(name, column.values, column.categories)
        return rows


def resolve_categorical(categorical_features: Any, names: list[str], has_names: bool) -> frozenset[str]:
    """Return the names of the columns that ``categorical_features`` declares.

    Raises
    ------
    ValueError
        If an entry is not a column.
    """
    if categorical_features is None or isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return frozenset()
    values = np.asarray(categorical_features)
    if values.ndim != 1 or isinstance(categorical_features, str):
        raise ValueError(
            "categorical_features must be 'from_dtype', or a list of column names, of indices or of booleans, got "
            f"{categorical_features!r}."
        )
    if values.size == 0:
        return frozenset()
    if values.dtype.kind == "b":
        if len(values) != len(names):
            raise ValueError(
                f"categorical_features must have one boolean for each of the {len(names)} columns, got {len(values)}."
            )
        return frozenset(name for name, is_declared in zip(names, values) if is_declared)
    if values.dtype.kind in "iu":
        wrong = values[(values < 0) | (values >= len(names))]
        if len(wrong):
            raise ValueError(f"categorical_features must contain indices in [0, {len(names)}), got {wrong[0]}.")
        return frozenset(names[index] for index in values)
    unknown = [value for value in values.tolist() if not isinstance(value, str) or value not in names]
    if unknown or not has_names:
        reason = f"there is no column {unknown[0]!r}" if has_names else "X has no column names, use indices"
        raise ValueError(f"categorical_features: {reason}.")
    return frozenset(values.tolist())


def warn_about_identifiers(integer_columns: list[tuple[str, npt.NDArray[Any]]], targets: npt.NDArray[Any]) -> None:
    """Warn about numeric columns of integers that look like identifiers.

    Parameters
    ----------
    integer_columns : list of (str, ndarray)
        Name and values of each numeric column with an integer type.
    targets : ndarray of shape (n_samples,)
        Targets, or indices of the classes.
    """
    suspects = [name for name, values in integer_columns if _looks_like_identifier(values, targets)]
    if suspects:
        warnings.warn(
            f"The integers of {', '.join(map(repr, suspects))} look like identifiers: the targets of neighboring values are "
            f"not similar. Pass categorical_features={suspects!r} if they are categories.",
            UserWarning,
            stacklevel=4,
        )


def _looks_like_identifier(values: npt.NDArray[Any], targets: npt.NDArray[Any]) -> bool:
    """Test whether the mean targets of the values differ, but not smoothly along the values.

    The variance between the values is estimated by the one-way random effects model (method of moments). Its smooth part
    is estimated by the covariance of the mean targets of neighboring values, whose errors are independent.
    """
    is_used = ~np.isnan(values[:_MAX_IDENTIFIER_ROWS])
    values, targets = values[:_MAX_IDENTIFIER_ROWS][is_used], targets[:_MAX_IDENTIFIER_ROWS][is_used]
    found, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    size, count = len(values), len(found)
    if count < _MIN_IDENTIFIER_VALUES or size < _MIN_ROWS_PER_IDENTIFIER * count:
        return False
    centered = targets - targets.mean()
    sums = np.bincount(codes, centered)
    means = sums / counts
    within = (centered @ centered - sums @ means) / (size - count)
    between = sums @ means / (count - 1)
    if within <= 0 or between <= within:
        return False
    # Under equal means, the ratio has the mean 1 and approximately the variance 2/(count - 1) + 2/(size - count).
    z_score = (between / within - 1) / np.sqrt(2 / (count - 1) + 2 / (size - count))
    if z_score < _MIN_IDENTIFIER_Z_SCORE:
        return False
    variance = (between - within) / ((size - counts @ counts / size) / (count - 1))
    weights = np.sqrt(counts[1:] * counts[:-1])
    shared = weights @ (means[1:] * means[:-1]) / weights.sum()
    return bool(shared < _MAX_SHARED_VARIANCE * variance)
