"""Measurements of the comparison and their summaries."""

from __future__ import annotations

import statistics
from typing import NamedTuple


class Record(NamedTuple):
    """One run of one method; a line of recovery.csv."""

    problem: str
    method: str
    ratio: float  # rows per degree of freedom
    rows: int
    seed: int
    error: float
    is_success: bool
    seconds: float  # CPU time


# Fraction of successful runs from which a method counts as successful at a number of rows.
REQUIRED_SUCCESS_RATE = 0.9


def select(records: list[Record], problem: str, method: str) -> list[Record]:
    """Return the records of a method on a problem."""
    return [record for record in records if record.problem == problem and record.method == method]


def success_rates(records: list[Record]) -> dict[float, float]:
    """Return the fraction of successful runs for each ratio, in increasing order of the ratios."""
    ratios = sorted({record.ratio for record in records})
    return {ratio: statistics.mean(record.is_success for record in records if record.ratio == ratio) for ratio in ratios}


def smallest_ratio(records: list[Record]) -> float | None:
    """Return the smallest ratio from which on all ratios have the required success rate; None if there is none."""
    smallest = None
    for ratio, rate in reversed(success_rates(records).items()):
        if rate < REQUIRED_SUCCESS_RATE:
            break
        smallest = ratio
    return smallest


def common_ratio(records: list[Record], problem: str, methods: list[str]) -> float | None:
    """Return the smallest ratio from which on all methods succeed, without methods that succeed at no ratio; None if all fail."""
    ratios = [smallest_ratio(select(records, problem, method)) for method in methods]
    return max((ratio for ratio in ratios if ratio is not None), default=None)


def median_seconds(records: list[Record], ratio: float) -> float:
    """Return the median CPU time at a ratio."""
    return statistics.median(record.seconds for record in records if record.ratio == ratio)
