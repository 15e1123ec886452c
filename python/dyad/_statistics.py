"""Sums over parts of the rows, which add."""

from __future__ import annotations

from typing import Any

from . import _core


class Statistics:
    """What a part of the rows says about a model: made by ``partial_statistics``, added with ``+`` or ``sum``.

    They are a few arrays of the model's size, whatever the number of rows; pickle carries them from worker to driver.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def rows(self) -> int:
        """How many rows have been looked at."""
        return _core.rows_of_statistics(self._data)

    def __add__(self, other: Any) -> Statistics:
        if isinstance(other, int) and other == 0:  # where sum() begins
            return self
        if not isinstance(other, Statistics):
            return NotImplemented
        return Statistics(_core.add_statistics(self._data, other._data))

    __radd__ = __add__

    def __reduce__(self) -> tuple[Any, ...]:
        return Statistics, (self._data,)

    def __repr__(self) -> str:
        return f"Statistics({self.rows} rows, {len(self._data)} bytes)"
