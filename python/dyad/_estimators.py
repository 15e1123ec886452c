"""Factorization machines as scikit-learn estimators. Pickles of version 0.1.0 refer to the classes in this module."""

from ._classifier import FactorizationClassifier
from ._regressor import FactorizationRegressor

__all__ = ["FactorizationClassifier", "FactorizationRegressor"]
