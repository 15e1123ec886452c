"""Types of the public methods, which mypy --strict and pyright verify (test_types.py). This file is not executed."""

import sys
from typing import Any, Union

import numpy as np
import numpy.typing as npt

if sys.version_info >= (3, 11):
    from typing import assert_type
else:
    from typing_extensions import assert_type

import dyad
from dyad import (
    FactorizationClassifier,
    FactorizationRegressor,
    InductiveMatrixCompletion,
    Learner,
    MatrixSensing,
    PhaseRetrieval,
    Statistics,
    Stream,
)

Floats = npt.NDArray[np.float64]
X, y = np.ones((3, 2)), np.ones(3)

regressor = FactorizationRegressor(rank=2, solver="kalman", categorical_features=["a"], date_encoding="calendar")
assert_type(regressor.fit(X, y), FactorizationRegressor)
assert_type(regressor.partial_fit(X, y), FactorizationRegressor)
assert_type(regressor.set_params(rank=1), FactorizationRegressor)
assert_type(regressor.get_params(), dict[str, Any])
assert_type(regressor.predict(X), Floats)
assert_type(regressor.predict(X, return_std=True), tuple[Floats, Floats])
assert_type(regressor.score(X, y), float)
assert_type(regressor.coef_, Floats)
assert_type(regressor.intercept_, Union[float, Floats])
assert_type(regressor.feature_importances_, Floats)
assert_type(regressor.n_iter_, int)
assert_type(regressor.n_features_in_, int)
assert_type(regressor.feature_names_in_, npt.NDArray[np.object_])
assert_type(regressor.get_feature_names_out(), npt.NDArray[np.object_])
assert_type(regressor.noise_factors(), list[tuple[str, float, float]])
assert_type(regressor.parameters()["spectrum"], Floats)
assert_type(regressor.effects()[0]["columns"], tuple[str, ...])
assert_type(regressor.partial_statistics(X, y), Statistics)
assert_type(regressor.save("m.dyad"), None)

classifier = FactorizationClassifier()
assert_type(classifier.fit(X, y), FactorizationClassifier)
assert_type(classifier.predict(X), npt.NDArray[Any])
assert_type(classifier.predict_proba(X), Floats)
assert_type(classifier.predict_proba(X, return_std=True), tuple[Floats, Floats])
assert_type(classifier.decision_function(X), Floats)
assert_type(classifier.classes_, npt.NDArray[Any])
assert_type(classifier.score(X, y), float)
assert_type(classifier.temperature_, float)

sensing = MatrixSensing(rank=2, warm_start=True)
assert_type(sensing.fit(X, y), MatrixSensing)
assert_type(sensing.predict(X), Floats)
assert_type(sensing.score(X, y), float)
assert_type(sensing.matrix_, Floats)
assert_type(sensing.fit_report_["degrees_of_freedom"], int)

phase = PhaseRetrieval()
assert_type(phase.fit(X, y), PhaseRetrieval)
assert_type(phase.signal_, Floats)
assert_type(PhaseRetrieval.align(y, y), Floats)

completion = InductiveMatrixCompletion()
assert_type(completion.fit(X, X, matrix=X), InductiveMatrixCompletion)
assert_type(completion.predict(X, X), Floats)
assert_type(completion.predict(X, X, return_std=True), tuple[Floats, Floats])
assert_type(completion.matrix_, Floats)
assert_type(completion.score(X, X, matrix=X), float)

learner = Learner("classification")
assert_type(learner.learn_one({"a": 1}, "yes"), Learner)
assert_type(learner.learn_many([{"a": 1}], ["yes"]), Learner)
assert_type(learner.predict_proba_one({"a": 1}), dict[Any, float])
assert_type(learner.predict_std_one({"a": 1}), tuple[float, float])
assert_type(learner.rows, int)

assert_type(dyad.stream("rows.csv", target="y"), Stream)

FactorizationRegressor(solver="sgd")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
FactorizationRegressor(diagonal="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Learner("ranking")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
