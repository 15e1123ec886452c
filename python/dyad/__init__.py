"""Second-order models y = b + w'x + x'Mx with a symmetric low-rank matrix M of any sign.

The estimators follow the conventions of scikit-learn. They have no step size, and predict standard deviations besides
targets and probabilities. Rows are read once, or several times while that decreases the loss of held-out rows. The
method is based on [1]_.

References
----------
.. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
   Sensing", Advances in Neural Information Processing Systems 29, 2016.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ._core import DataError, __version__

if TYPE_CHECKING:
    from ._classifier import FactorizationClassifier
    from ._completion import InductiveMatrixCompletion
    from ._files import load
    from ._learner import Learner
    from ._measurements import MatrixSensing, PhaseRetrieval
    from ._plots import plot_calibration, plot_learning_curve
    from ._regressor import FactorizationRegressor
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
    "plot_learning_curve",
    "stream",
]

# Submodule of each public name. Submodules are imported on first access, so that Spark executors do not load
# scikit-learn.
_SUBMODULES = {
    "FactorizationClassifier": "_classifier",
    "FactorizationRegressor": "_regressor",
    "InductiveMatrixCompletion": "_completion",
    "Learner": "_learner",
    "MatrixSensing": "_measurements",
    "PhaseRetrieval": "_measurements",
    "Statistics": "_statistics",
    "Stream": "_stream",
    "load": "_files",
    "plot_calibration": "_plots",
    "plot_learning_curve": "_plots",
    "stream": "_stream",
}


def __getattr__(name: str) -> Any:
    """Import the submodule of a public name and return the object."""
    if name not in _SUBMODULES:
        raise AttributeError(f"module 'dyad' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_SUBMODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
