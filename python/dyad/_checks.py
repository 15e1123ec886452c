"""Validation of arguments. Errors name the argument, its value and the allowed values."""

from __future__ import annotations

import math
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


def resolve_jobs(n_jobs: Any) -> int:
    """Return the number of threads for the extension, where 0 stands for all cores.

    The rules are those of scikit-learn: None is 1, or the number that ``joblib.parallel_config`` sets, -1 is all cores,
    and -2 all cores but one.
    """
    is_integer = isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_integer or n_jobs == 0):
        raise ValueError(f"n_jobs must be a positive or negative integer (-1: all cores) or None, got {n_jobs!r}.")
    if n_jobs is None or n_jobs < -1:
        import joblib

        return int(joblib.effective_n_jobs(n_jobs))
    return 0 if n_jobs == -1 else int(n_jobs)


def check_prior_scale(prior_scale: Any, solver: str) -> Optional[float]:
    """Return the multiplier of the prior variances as a float, or None."""
    if prior_scale is None:
        return None
    is_number = isinstance(prior_scale, numbers.Real) and not isinstance(prior_scale, bool)
    if not is_number or not 0 < prior_scale < math.inf:
        raise ValueError(f"prior_scale must be a positive finite number or None, got {prior_scale!r}.")
    if solver != "kalman":
        raise ValueError(
            f"prior_scale requires solver='kalman', got solver={solver!r}; the other solvers select the strength of the "
            "regularization from the data."
        )
    return float(prior_scale)


def check_target_range(target_range: Any) -> Optional[tuple[float, float]]:
    """Return the bounds as a pair of increasing floats, or None."""
    if target_range is None:
        return None
    try:
        low, high = (float(bound) for bound in target_range)
    except (TypeError, ValueError):
        raise ValueError(f"target_range must contain two numbers, such as (1, 5), got {target_range!r}.") from None
    if not low < high:
        raise ValueError(
            f"target_range must contain a lower and a larger upper bound, such as (1, 5), got {target_range!r}."
        )
    return low, high
