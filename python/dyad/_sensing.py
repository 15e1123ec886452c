"""Estimators of low-rank matrices and signals. Pickles of version 0.1.0 refer to the classes in this module."""

from ._completion import InductiveMatrixCompletion
from ._measurements import MatrixSensing, PhaseRetrieval

__all__ = ["InductiveMatrixCompletion", "MatrixSensing", "PhaseRetrieval"]
