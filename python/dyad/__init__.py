"""Second-order models, y = b + w'x + x'Mx with M of low rank and any sign, from data that streams by once."""

import importlib
from typing import TYPE_CHECKING, Any

from ._core import DataError, __version__

if TYPE_CHECKING:
    from ._estimators import FactorizationClassifier, FactorizationRegressor
    from ._files import load
    from ._learner import Learner
    from ._plots import plot_calibration
    from ._sensing import InductiveMatrixCompletion, MatrixSensing, PhaseRetrieval
    from ._statistics import Statistics
    from ._stream import Stream, stream

__all__ = [
    "DataError",
    "FactorizationClassifier",
    "FactorizationRegressor",
    "InductiveMatrixCompletion",
    "Learner",
    "MatrixSensing",
    "PhaseRetrieval",
    "Statistics",
    "Stream",
    "__version__",
    "load",
    "plot_calibration",
    "stream",
]

# Loaded when they are first asked for: a worker of a cluster needs none of scikit-learn.
_PLACES = {
    "FactorizationClassifier": "_estimators",
    "FactorizationRegressor": "_estimators",
    "InductiveMatrixCompletion": "_sensing",
    "Learner": "_learner",
    "MatrixSensing": "_sensing",
    "PhaseRetrieval": "_sensing",
    "Statistics": "_statistics",
    "Stream": "_stream",
    "load": "_files",
    "plot_calibration": "_plots",
    "stream": "_stream",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'dyad' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
