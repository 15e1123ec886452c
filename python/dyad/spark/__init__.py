"""Spark ML estimators of second-order models, and a learner for Structured Streaming.

Install with ``pip install dyad-ml[spark]``, on the driver and on the executors.
"""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("dyad.spark requires pyspark; install it with: pip install dyad-ml[spark]") from error

if TYPE_CHECKING:
    from ._classification import FactorizationClassificationModel, FactorizationClassifier
    from ._regression import FactorizationRegressionModel, FactorizationRegressor
    from ._streaming import StreamLearner

__all__ = [
    "FactorizationClassificationModel",
    "FactorizationClassifier",
    "FactorizationRegressionModel",
    "FactorizationRegressor",
    "StreamLearner",
]

# Submodule of each public name. Submodules are imported on first access, because executors do not need them.
_SUBMODULES = {
    "FactorizationClassificationModel": "_classification",
    "FactorizationClassifier": "_classification",
    "FactorizationRegressionModel": "_regression",
    "FactorizationRegressor": "_regression",
    "StreamLearner": "_streaming",
}


def __getattr__(name: str) -> Any:
    """Import the submodule of a public name and return the object."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module 'dyad.spark' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_SUBMODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
