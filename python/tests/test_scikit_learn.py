"""scikit-learn's own checks, for every estimator and solver to which its contract applies."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from dyad import FactorizationClassifier, FactorizationRegressor, MatrixSensing, PhaseRetrieval

SOLVERS = ["auto", "moment", "kalman", "newton", "variational"]

ESTIMATORS = [
    *(FactorizationRegressor(solver=solver) for solver in SOLVERS),
    *(FactorizationClassifier(solver=solver) for solver in SOLVERS),
    MatrixSensing(),
    PhaseRetrieval(),
]


# Checks that compare fits on the same rows in another order, with repeated rows in place of weights.
ORDER_CHECKS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
REASONS = {
    "kalman": "the filter reads each row once, so that the model depends on the order of the rows",
    "variational": "the sweeps start from one pass of the filter, which depends on the order of the rows",
}


def expected_failures(estimator):
    reason = REASONS.get(getattr(estimator, "solver", ""))
    return {} if reason is None else dict.fromkeys(ORDER_CHECKS, reason)


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures, xfail_strict=True)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)
