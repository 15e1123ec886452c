"""Validation of arguments. Errors name the argument, its value and the allowed values."""

from __future__ import annotations

import numbers
from typing import Any, Optional

import numpy as np


def check_integer(name: str, value: Any, minimum: int, optional: bool = False) -> None:
    """Raise ValueError unless the value is an integer of at least ``minimum``, or None if ``optional``."""
    if optional and value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name} must be an integer of at least {minimum}, got {value!r}.")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless the value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def resolve_seed(random_state: Any) -> int:
    """Return the seed of ``random_state``: None is 1, and a RandomState is sampled."""
    if random_state is None:
        return 1
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    check_integer("random_state", random_state, 0)
    return int(random_state)


def resolve_threads(n_threads: Any) -> int:
    """Return the number of threads for the extension, where 0 stands for all cores."""
    check_integer("n_threads", n_threads, 1, optional=True)
    return 0 if n_threads is None else int(n_threads)


def check_range(range: Any) -> Optional[tuple[float, float]]:
    """Return the bounds as a pair of increasing floats, or None."""
    if range is None:
        return None
    try:
        low, high = (float(bound) for bound in range)
    except (TypeError, ValueError):
        raise ValueError(f"range must contain two numbers, such as (1, 5), got {range!r}.") from None
    if not low < high:
        raise ValueError(f"range must contain a lower and a larger upper bound, such as (1, 5), got {range!r}.")
    return low, high
