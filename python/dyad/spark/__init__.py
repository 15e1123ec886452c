"""dyad on Spark: ordinary Spark ML estimators, a learner for Structured Streaming; needs ``pip install dyad[spark]``."""

import importlib
from typing import TYPE_CHECKING, Any

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("dyad.spark needs Spark: pip install dyad[spark]") from error

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

# Loaded when they are first asked for: executors need none of them.
_PLACES = {
    "FactorizationClassificationModel": "_classification",
    "FactorizationClassifier": "_classification",
    "FactorizationRegressionModel": "_regression",
    "FactorizationRegressor": "_regression",
    "StreamLearner": "_streaming",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'dyad.spark' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
