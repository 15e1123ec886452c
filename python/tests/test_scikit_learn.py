"""scikit-learn's own checks, for every estimator and solver to which its contract applies."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dyad import FactorizationClassifier, FactorizationRegressor, MatrixSensing, PhaseRetrieval

SOLVERS = ["auto", "moment", "kalman", "newton", "variational"]

ESTIMATORS = [
    *(FactorizationRegressor(solver=solver) for solver in SOLVERS),
    *(FactorizationClassifier(solver=solver) for solver in SOLVERS),
    MatrixSensing(),
    PhaseRetrieval(),
]


def expected_failures(estimator):
    return {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
