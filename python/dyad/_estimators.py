"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

import warnings
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted, column_or_1d

from . import _core, _plain
from ._checks import range_of
from ._factorization import (
    DEFAULT_RANK,
    Callback,
    Factorization,
    require_same_length,
    require_target,
    set_weights,
)
from ._statistics import Statistics

Floats = npt.NDArray[np.float64]


class FactorizationRegressor(RegressorMixin, Factorization):
    """Second-order regression: y = b + w'x + x'Mx with M symmetric, of low rank and of any sign.

    There is no step size and nothing has to be tuned. Few rows in memory are fitted by Gauss-Newton on all of them,
    with the strength of the ridge chosen by cross-validation; neither the order of the rows nor copies of rows in
    place of weights change the result. Many rows are learned in one pass by a Kalman filter, then again as long as
    the held-out loss decreases.

    Parameters
    ----------
    rank : int, default=8
        The rank of M; at most the number of features. More is hardly ever worse.
    solver : {'auto', 'moment', 'kalman', 'newton', 'variational'}, default='auto'
        Who learns. 'kalman' and 'moment' read each row once.
    diagonal : {'auto', 'tied', 'zero', 'free'}, default='auto'
        What squares of features are to the model: part of M, nothing, or weights of their own.
    range : tuple of two floats, optional
        That targets cannot leave, such as (1, 5) for ratings. Found in the data unless given.
    passes : int, optional
        How often the rows are read; as often as it helps unless given.
    half_life : int, optional
        Rows after which data counts half, for streams that drift.
    memory : float, default=1e9
        Bytes for what is kept of the rows; 0 means one pass.
    precision : {'double', 'single'}, default='double'
        Of the model.
    random_state : int, optional
        The seed; the same data and seed give the same model.
    n_threads : int, optional
        All cores unless given.
    warm_start : bool, default=False
        Whether ``fit`` goes on from the model that is there. Parameters that the model depends on must not change then.
    verbose : int, default=0
        Whether progress is printed.
    callback : callable, optional
        Called with (stage, rows, level, loss) now and then; stage is 'pass' or 'refine'. The loss is NaN where a step
        has not measured it.

    Attributes
    ----------
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where X has some.
    summary_ : dict
        What training did: rows, seconds, origin, noise, passes, solver, trace.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import FactorizationRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = 1 + X[:, 0] - 2 * X[:, 1] * X[:, 2]
    >>> model = FactorizationRegressor(rank=2).fit(X, y)
    >>> round(model.score(X, y), 6)
    1.0
    """

    def __init__(
        self,
        rank: int = DEFAULT_RANK,
        *,
        solver: str = "auto",
        diagonal: str = "auto",
        range: Optional[tuple[float, float]] = None,
        passes: Optional[int] = None,
        half_life: Optional[int] = None,
        memory: float = 1e9,
        precision: str = "double",
        random_state: Optional[int] = None,
        n_threads: Optional[int] = None,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Optional[Callback] = None,
    ) -> None:
        super().__init__(
            rank,
            solver=solver,
            diagonal=diagonal,
            passes=passes,
            half_life=half_life,
            memory=memory,
            precision=precision,
            random_state=random_state,
            n_threads=n_threads,
            warm_start=warm_start,
            verbose=verbose,
            callback=callback,
        )
        self.range = range

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self.solver == "moment"  # a few hundred rows are not enough for a first step
        return tags

    def _settings(self) -> _core.Settings:
        settings = super()._settings()
        settings.range = range_of(self.range)
        return settings

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationRegressor:
        """Learn from rows and their targets.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Columns of text and categories become one feature for each value; sparse rows are taken as they are.
        y : array-like of shape (n_samples,)
            Numbers.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        FactorizationRegressor
            Itself.
        """
        return self._fit(X, y, sample_weight, self._settings(), self._is_continued(is_partial=False))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationRegressor:
        """Learn more rows, each once; the first call decides about scales, so let it have some thousand rows.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        FactorizationRegressor
            Itself.
        """
        return self._fit(X, y, sample_weight, self._one_pass_settings(), self._is_continued(is_partial=True))

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, settings: _core.Settings, goes_on: bool
    ) -> FactorizationRegressor:
        rows = self._rows_with_targets(X, y, sample_weight, reset=not goes_on)
        self._keep([self._learn(rows, settings, self._models[0] if goes_on else None)])
        return self

    def _rows_with_targets(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> _core.Rows:
        require_target(y)
        rows = self._rows_of(X, reset=reset)
        y = np.require(_check_y(y, y_numeric=True, estimator=self), np.float64, ["C", "A"])
        require_same_length(X, y)
        rows.set_targets(y, [])
        set_weights(rows, sample_weight, X)
        return rows

    def partial_statistics(self, X: Any, y: Any, sample_weight: Any = None) -> Statistics:
        """Sum up what a part of the rows says about this model, which stays as it is; for ``solver='moment'``.

        Rows that lie on many machines are learned in rounds: every worker sums up its own part, the sums are added,
        and ``apply_statistics`` makes the next model of them, which goes to the workers again. The model is that of
        all rows in one place, whatever the parts; what travels is a few times the size of the model.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``: the part. Categories and columns that the model does not know are left out, so let the rows
            of the first ``partial_fit`` be a fair sample.

        Returns
        -------
        Statistics
            To be added to those of other parts.
        """
        check_is_fitted(self)
        rows = self._rows_with_targets(X, y, sample_weight, reset=False)
        return Statistics(_core.gather_statistics(self._models[0], rows, self._threads))

    def apply_statistics(self, statistics: Statistics) -> FactorizationRegressor:
        """Make the next model of statistics that were summed up over all parts, for this one.

        Rounds take turns: one proposes a step, the next finds out how far it leads and takes it. ``summary_`` then holds
        ``rmse``, of the model that the statistics were gathered for, ``steps_tried`` and ``steps_taken``.

        Parameters
        ----------
        statistics : Statistics
            The sum.

        Returns
        -------
        FactorizationRegressor
            Itself.
        """
        check_is_fitted(self)
        self._keep([_core.apply_statistics(self._models[0], statistics._data)])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : as in ``fit``
            Rows. Categories that were never seen count as nothing.
        return_std : bool, default=False
            Whether to return the standard deviation of each target, too: of the noise, and of what is not known of the
            model.

        Returns
        -------
        ndarray of shape (n_samples,), or two of them
        """
        rows = self._rows_to_predict(X)
        return self._predictors[0].predict(rows, bool(return_std), self._threads)


class FactorizationClassifier(ClassifierMixin, Factorization):
    """Second-order classification: the log-odds of a class are b + w'x + x'Mx; several classes one against the rest.

    See `FactorizationRegressor` for the parameters, of which ``range`` has no meaning here.

    Attributes
    ----------
    classes_ : ndarray
        The classes.
    n_features_in_, feature_names_in_, summary_
        As for the regressor; with more than two classes ``summary_`` is a list.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import FactorizationClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> bool(FactorizationClassifier(rank=2).fit(X, y).score(X, y) > 0.95)
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationClassifier:
        """Learn from rows and their classes.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            As for the regressor.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts.

        Returns
        -------
        FactorizationClassifier
            Itself.
        """
        return self._fit(X, y, sample_weight, None, self._settings(), self._is_continued(is_partial=False))

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> FactorizationClassifier:
        """Learn more rows, each once.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : array-like, optional
            All classes that will ever come; needed in the first call.

        Returns
        -------
        FactorizationClassifier
            Itself.
        """
        goes_on = self._is_continued(is_partial=True)
        if not goes_on and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if goes_on and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("classes must be those of the first call to partial_fit.")
        return self._fit(X, y, sample_weight, classes, self._one_pass_settings(), goes_on)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, settings: _core.Settings, goes_on: bool
    ) -> FactorizationClassifier:
        require_target(y)
        rows = self._rows_of(X, reset=not goes_on)  # X is checked before y, as users of scikit-learn expect
        y = column_or_1d(y, warn=True)
        require_same_length(X, y)
        check_classification_targets(y)
        if not goes_on:
            self.classes_ = np.unique(y if classes is None else classes)
        if not np.all(np.isin(y, self.classes_)):
            raise ValueError("y holds a class that is not among the classes of the first call.")
        learned = []
        places = range(1, 2) if len(self.classes_) <= 2 else range(len(self.classes_))
        if len(self.classes_) == 1:
            places = range(1)
        set_weights(rows, sample_weight, X)
        for at, place in enumerate(places):
            own = (y == self.classes_[place]).astype(np.float64)
            rows.set_targets(own, self._labels(place))
            with warnings.catch_warnings():
                if len(self.classes_) == 1:
                    warnings.simplefilter("ignore", ConvergenceWarning)
                learned.append(self._learn(rows, settings, self._models[at] if goes_on else None))
        self._keep(learned)
        return self

    def _attributes(self) -> dict[str, Any]:
        return {"classes": _plain.encoded_array(self.classes_)}

    def _restore(self, predictor: _core.Predictor, attributes: Optional[dict[str, Any]]) -> None:
        if attributes is None:
            self.classes_ = _numbers_of(predictor.labels())
            return
        self.classes_ = _plain.decoded_array(attributes["classes"])
        if len(self._models) != (1 if len(self.classes_) <= 2 else len(self.classes_)):
            raise ValueError(f"it has {len(self._models)} models for {len(self.classes_)} classes")

    def _labels(self, place: int) -> list[str]:
        if len(self.classes_) == 2:
            return [str(value) for value in self.classes_]
        name = str(self.classes_[place])
        return [f"not {name}", name]

    def predict_proba(self, X: Any, return_std: bool = False) -> Any:
        """Predict the probability of each class.

        Parameters
        ----------
        X : as in ``fit``
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of the probabilities, too (two classes only).

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or two of them
        """
        rows = self._rows_to_predict(X)
        predictors = self._predictors
        if return_std:
            if len(predictors) > 1:
                raise ValueError("return_std is for two classes.")
            values, deviations = predictors[0].predict(rows, True, self._threads)
            return np.column_stack([1 - values, values]), np.column_stack([deviations, deviations])
        values = np.column_stack([predictor.predict(rows, False, self._threads) for predictor in predictors])
        if len(self.classes_) == 1:
            return np.ones((values.shape[0], 1))
        if len(self.classes_) == 2:
            return np.column_stack([1 - values[:, 0], values[:, 0]])
        total = values.sum(axis=1, keepdims=True)
        return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / len(self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """Return log-odds: of the second of two classes, or of each class against the rest.

        Parameters
        ----------
        X : as in ``fit``
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        rows = self._rows_to_predict(X)
        least = np.finfo(float).tiny
        values = np.column_stack([predictor.predict(rows, False, self._threads) for predictor in self._predictors])
        odds = np.log(np.maximum(values, least)) - np.log(np.maximum(1 - values, least))
        result: Floats = odds[:, 0] if odds.shape[1] == 1 else odds
        return result

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : as in ``fit``
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decision = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, decision.shape[0])
        best = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        chosen: npt.NDArray[Any] = self.classes_[best]
        return chosen


def _numbers_of(labels: list[str]) -> npt.NDArray[Any]:
    """Labels of the command line: numbers if all of them are written as Python writes numbers, else text."""
    for kind in (int, float):
        try:
            values = [kind(label) for label in labels]
        except ValueError:
            continue
        if all(label in (f"{value}", f"{value:.17g}") for label, value in zip(labels, values)):
            return np.array(values)
    return np.array(labels)
