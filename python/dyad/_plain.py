"""Values as JSON that gives the same types back: parameters, class labels and names of features in model files."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import numpy.typing as npt


def encoded(value: Any) -> Any:
    """Return a value of JSON, from which `decoded` makes an equal value of the same type.

    Scalars of NumPy become those of Python, which are equal and have the same hash.

    Raises
    ------
    TypeError
        If the type is none of None, bool, int, float, str, Decimal, and tuples and lists of these.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [encoded(part) for part in value]}
    raise TypeError(f"values of type {type(value).__name__} cannot be saved")


def decoded(value: Any) -> Any:
    """Return the value that `encoded` was given. Raises ValueError for other JSON."""
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind == "decimal" and isinstance(content, str):
            return decimal.Decimal(content)
        if kind in ("tuple", "list") and isinstance(content, list):
            parts = [decoded(part) for part in content]
            return tuple(parts) if kind == "tuple" else parts
    raise ValueError(f"expected a value written by dyad, got {str(value)[:80]}")


def encoded_array(values: npt.NDArray[Any]) -> Any:
    """Like `encoded`, for an array of class labels. Raises TypeError if their type cannot be saved."""
    if values.dtype.kind not in "biufUO":
        raise TypeError(f"class labels of type {values.dtype} cannot be saved; pickle the estimator instead")
    return {"dtype": values.dtype.str, "values": [encoded(value) for value in values]}


def decoded_array(content: Any) -> npt.NDArray[Any]:
    if not isinstance(content, dict) or set(content) != {"dtype", "values"}:
        raise ValueError("expected class labels written by dyad")
    values = [decoded(value) for value in content["values"]]
    array = np.empty(len(values), dtype=np.dtype(str(content["dtype"])))
    array[:] = values
    return array
