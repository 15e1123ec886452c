"""Second-order models, y = b + w'x + x'Mx with M of low rank and any sign, from data that streams by once."""

from ._core import DataError, __version__
from ._estimators import FactorizationClassifier, FactorizationRegressor, load
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
