"""JSON representation of parameters, class labels and feature names in model files. It preserves their types."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import numpy.typing as npt


def encode_value(value: Any) -> Any:
    """Return a JSON value from which `decode_value` restores an equal value of the same type.

    NumPy scalars become Python scalars, which are equal and have the same hash. Arrays become lists.

    Raises
    ------
    TypeError
        If the type is not None, bool, int, float, str, Decimal, or a tuple or list of these.
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, (tuple, list)):
        return {type(value).__name__: [encode_value(element) for element in value]}
    raise TypeError(f"values of type {type(value).__name__} cannot be saved; pickle the object instead")


def decode_value(value: Any) -> Any:
    """Return the argument of `encode_value`. Raise ValueError for other JSON values."""
    if not isinstance(value, (dict, list)):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind == "decimal" and isinstance(content, str):
            return decimal.Decimal(content)
        if kind in ("tuple", "list") and isinstance(content, list):
            elements = [decode_value(element) for element in content]
            return tuple(elements) if kind == "tuple" else elements
    raise ValueError(f"expected a value written by dyad, got {str(value)[:80]}")


def encode_labels(values: npt.NDArray[Any]) -> Any:
    """Return a JSON value from which `decode_labels` restores the array of class labels.

    Raises
    ------
    TypeError
        If labels of this dtype cannot be saved.
    """
    if values.dtype.kind not in "biufUO":
        raise TypeError(f"class labels of type {values.dtype} cannot be saved; pickle the estimator instead")
    return {"dtype": values.dtype.str, "values": [encode_value(value) for value in values]}


def decode_labels(content: Any) -> npt.NDArray[Any]:
    """Return the argument of `encode_labels`. Raise ValueError for other JSON values."""
    if not isinstance(content, dict) or set(content) != {"dtype", "values"}:
        raise ValueError("expected class labels written by dyad")
    values = [decode_value(value) for value in content["values"]]
    array = np.empty(len(values), dtype=np.dtype(str(content["dtype"])))
    array[:] = values
    return array
