"""Checks of arguments. Errors name the argument, its value and what is allowed."""

from __future__ import annotations

import numbers
from typing import Any, Optional

import numpy as np


def require_whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    if optional and value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def seed_of(random_state: Any) -> int:
    if random_state is None:
        return 1
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    require_whole("random_state", random_state, 0)
    return int(random_state)


def threads_of(n_threads: Any) -> int:
    require_whole("n_threads", n_threads, 1, optional=True)
    return 0 if n_threads is None else int(n_threads)


def range_of(range: Any) -> Optional[tuple[float, float]]:
    """Two increasing numbers, or None."""
    if range is None:
        return None
    try:
        low, high = (float(end) for end in range)
    except (TypeError, ValueError):
        raise ValueError(f"range must hold two numbers, such as (1, 5), got {range!r}.") from None
    if not low < high:
        raise ValueError(f"range must go from a number up to a larger one, got {range!r}.")
    return low, high
