"""Factorization machines as scikit-learn estimators."""

from __future__ import annotations

import logging
import numbers
import os
import warnings
from typing import Any, Callable, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from . import _core, _rows
from ._plots import Plots
from ._predictors import Predictors
from ._statistics import Statistics

logger = logging.getLogger("dyad")

Floats = npt.NDArray[np.float64]
Callback = Callable[[str, int, str, float], None]


class _Factorization(Plots, BaseEstimator):
    """What regression and classification share: parameters, rows, and the models behind them."""

    def __init__(
        self,
        rank: int = 8,
        *,
        solver: str = "auto",
        diagonal: str = "auto",
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
        self.rank = rank
        self.solver = solver
        self.diagonal = diagonal
        self.passes = passes
        self.half_life = half_life
        self.memory = memory
        self.precision = precision
        self.random_state = random_state
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_predictors", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_models" in state:
            self._predictors = Predictors(self._models)

    def _settings(self) -> _core.Settings:
        _require_whole("rank", self.rank, 1)
        _require_whole("passes", self.passes, 1, optional=True)
        _require_whole("half_life", self.half_life, 1, optional=True)
        _require_whole("verbose", int(self.verbose), 0)
        _require_choice("solver", self.solver, ("auto", "moment", "kalman", "newton", "variational"))
        _require_choice("diagonal", self.diagonal, ("auto", "tied", "zero", "free"))
        _require_choice("precision", self.precision, ("double", "single"))
        if not isinstance(self.memory, numbers.Real) or not self.memory >= 0:
            raise ValueError(f"memory must be a number of bytes, at least 0, got {self.memory!r}.")
        settings = _core.Settings()
        settings.rank = int(self.rank)
        settings.solver = None if self.solver == "auto" else self.solver
        settings.diagonal = None if self.diagonal == "auto" else self.diagonal
        settings.passes = None if self.passes is None else int(self.passes)
        settings.half_life = None if self.half_life is None else int(self.half_life)
        settings.memory = float(self.memory)
        settings.precision = self.precision
        settings.seed = _seed_of(self.random_state)
        settings.threads = _threads_of(self.n_threads)
        settings.target = "target"
        return settings

    def _learning_rows(self, X: Any, reset: bool) -> _core.Rows:
        """Checks X as scikit-learn does, and remembers what sort of rows these are."""
        if _rows.is_table(X) and (reset or self._layout == "table"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            _require_rows(len(X))
            if reset:
                self._layout: str = "table"
                self._columns: list[str] = _rows.column_names(X)
            return _rows.from_table(X)
        return self._checked_rows(X, reset)

    def _checked_rows(self, X: Any, reset: bool) -> _core.Rows:
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        if sp.issparse(X):
            if reset:
                self._layout = "sparse"
            if self._layout == "sparse":
                return _rows.from_sparse(X)
            X = X.toarray()
        if reset:
            self._layout = "matrix"
        if self._layout == "sparse":
            return _rows.from_sparse(sp.csr_matrix(X))
        return _rows.from_array_by_names(X, self._columns) if self._layout == "table" else _rows.from_array(X)

    def _rows_to_predict(self, X: Any) -> _core.Rows:
        check_is_fitted(self)
        return self._learning_rows(X, reset=False)

    def _learn(self, rows: _core.Rows, settings: _core.Settings, model: Optional[bytes]) -> tuple[bytes, dict[str, Any]]:
        if model is not None:
            for name in ("rank", "solver", "diagonal", "passes", "half_life", "precision", "seed", "range"):
                setattr(settings, name, None)
            settings.target = ""
        learned, summary = _core.fit(rows, settings, model, self._tell)
        for warning in summary["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=4)
        logger.info("%s rows in %.3f s; %s", summary["rows"], summary["seconds"], summary["story"])
        return learned, summary

    def _tell(self, stage: str, rows: int, level: str, loss: float) -> None:
        if self.verbose:
            print(f"dyad: {rows} rows, loss {loss:.6g}" if stage == "pass" else f"dyad: {level}, loss {loss:.6g}")
        if self.callback is not None:
            self.callback(stage, rows, level, loss)

    def _keep(self, learned: list[tuple[bytes, dict[str, Any]]]) -> None:
        self._models = [model for model, _ in learned]
        self.summary_ = learned[0][1] if len(learned) == 1 else [summary for _, summary in learned]
        self._predictors = Predictors(self._models)

    @property
    def _threads(self) -> int:
        return _threads_of(self.n_threads)

    def _of_class(self, class_index: Optional[int]) -> int:
        check_is_fitted(self)
        if class_index is None and len(self._models) > 1:
            raise ValueError("There is one model for each class: say which with class_index.")
        return class_index or 0

    def save(self, path: str | os.PathLike[str], class_index: Optional[int] = None) -> None:
        """Write the model to a file that the ``dyad`` command reads.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced as a whole, or not at all.
        class_index : int, optional
            Which class's model, where a classifier has more than two classes.
        """
        place = self._of_class(class_index)
        temporary = f"{os.fspath(path)}.{os.getpid()}.part"
        with open(temporary, "wb") as file:
            file.write(self._models[place])
        os.replace(temporary, path)

    def interactions(self, top: int = 20, class_index: Optional[int] = None) -> Any:
        """Return the strongest pairs of features as a table.

        Parameters
        ----------
        top : int, default=20
            How many.
        class_index : int, optional
            Which class's model, where a classifier has more than two classes.

        Returns
        -------
        pandas.DataFrame
            With the columns ``left``, ``right``, ``coefficient`` (in the units of the data) and ``effect`` (of one
            standard deviation of each, or of being in a category).
        """
        _require_whole("top", top, 0)
        found = self._predictors[self._of_class(class_index)].inspect(int(top))
        return pd.DataFrame(found["pairs"], columns=["left", "right", "coefficient", "effect"])

    def parameters(self, class_index: Optional[int] = None) -> dict[str, Any]:
        """Return the model's arrays: ``intercept``, ``weights``, ``factors``, ``spectrum`` and ``squares``.

        They are those of scaled features and the scaled target: y = b + w'z + z'(U diag(spectrum) U')z + squares'z**2.
        """
        return self._predictors[self._of_class(class_index)].parameters()


class FactorizationRegressor(RegressorMixin, _Factorization):
    """Second-order regression: y = b + w'x + x'Mx with M symmetric, of low rank and of any sign.

    There is no step size and nothing has to be tuned. Few rows in memory are fitted by Gauss-Newton on all of them,
    with the strength of the ridge chosen by cross-validation; neither the order of the rows nor copies of rows in
    place of weights change the result. Many rows are learned in one pass by a Kalman filter, then again as long as
    held-out rows say that it helps.

    Parameters
    ----------
    rank : int, default=8
        The rank of M; more is hardly ever worse.
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
        Whether ``fit`` goes on from the model that is there.
    verbose : int, default=0
        Whether progress is printed.
    callback : callable, optional
        Called with (stage, rows, level, loss) now and then; stage is 'pass' or 'refine'.

    Attributes
    ----------
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, where X has some.
    summary_ : dict
        What training did: rows, seconds, story, noise, passes, solver, trace.

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
        rank: int = 8,
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

    def _settings(self) -> _core.Settings:
        settings = super()._settings()
        if self.range is not None:
            low, high = self.range
            if not low < high:
                raise ValueError(f"range must go from a number up to a larger one, got {self.range!r}.")
            settings.range = (float(low), float(high))
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
        goes_on = self.warm_start and hasattr(self, "_models")
        return self._fit(X, y, sample_weight, self._settings(), goes_on)

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
        settings = self._settings()
        settings.passes = 1 if settings.solver in (None, "auto") else None
        return self._fit(X, y, sample_weight, settings, hasattr(self, "_models"))

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, settings: _core.Settings, goes_on: bool
    ) -> FactorizationRegressor:
        rows = self._rows_with_targets(X, y, sample_weight, reset=not goes_on)
        self._keep([self._learn(rows, settings, self._models[0] if goes_on else None)])
        return self

    def _rows_with_targets(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> _core.Rows:
        _require_target(y)
        rows = self._learning_rows(X, reset=reset)
        y = np.ascontiguousarray(_check_y(y, y_numeric=True, estimator=self), dtype=np.float64)
        _require_same_length(X, y)
        rows.set_targets(y, [])
        _set_weights(rows, sample_weight, X)
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


class FactorizationClassifier(ClassifierMixin, _Factorization):
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
        goes_on = self.warm_start and hasattr(self, "_models")
        return self._fit(X, y, sample_weight, None, self._settings(), goes_on)

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
        goes_on = hasattr(self, "_models")
        if not goes_on and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if goes_on and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("classes must be those of the first call to partial_fit.")
        settings = self._settings()
        settings.passes = 1 if settings.solver in (None, "auto") else None
        return self._fit(X, y, sample_weight, classes, settings, goes_on)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, settings: _core.Settings, goes_on: bool
    ) -> FactorizationClassifier:
        _require_target(y)
        self._learning_rows(X, reset=not goes_on)  # X is checked before y, as users of scikit-learn expect
        y = column_or_1d(y, warn=True)
        _require_same_length(X, y)
        check_classification_targets(y)
        if not goes_on:
            self.classes_ = np.unique(y if classes is None else classes)
        if not np.all(np.isin(y, self.classes_)):
            raise ValueError("y holds a class that is not among the classes of the first call.")
        learned = []
        places = range(1, 2) if len(self.classes_) <= 2 else range(len(self.classes_))
        if len(self.classes_) == 1:
            places = range(1)
        for at, place in enumerate(places):
            rows = self._learning_rows(X, reset=False)
            own = (y == self.classes_[place]).astype(np.float64)
            rows.set_targets(own, self._labels(place))
            _set_weights(rows, sample_weight, X)
            with warnings.catch_warnings():
                if len(self.classes_) == 1:
                    warnings.simplefilter("ignore", ConvergenceWarning)
                learned.append(self._learn(rows, settings, self._models[at] if goes_on else None))
        self._keep(learned)
        return self

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


def load(path: str | os.PathLike[str]) -> FactorizationRegressor | FactorizationClassifier:
    """Read a model that ``save`` or the ``dyad`` command wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    FactorizationRegressor or FactorizationClassifier
        Fitted; ``partial_fit`` goes on from it.
    """
    predictor = _core.Predictor.load(os.fspath(path))
    with open(path, "rb") as file:
        return _estimator_of(file.read(), predictor)


def from_bytes(model: bytes) -> FactorizationRegressor | FactorizationClassifier:
    """Make a fitted estimator of the bytes of a model file."""
    return _estimator_of(model, _core.Predictor.from_bytes(model))


def _estimator_of(model: bytes, predictor: _core.Predictor) -> FactorizationRegressor | FactorizationClassifier:
    labels = predictor.labels()
    parameters = predictor.parameters()
    rank = len(parameters["spectrum"])
    estimator: FactorizationRegressor | FactorizationClassifier
    if labels:
        estimator = FactorizationClassifier(rank=rank)
        estimator.classes_ = _as_numbers(np.array(labels))
    else:
        estimator = FactorizationRegressor(rank=rank)
    estimator._layout = predictor.layout()
    estimator._columns = predictor.column_names()
    estimator.n_features_in_ = len(estimator._columns)
    if estimator._layout == "table":
        estimator.feature_names_in_ = np.array(estimator._columns, dtype=object)
    estimator._keep([(model, {})])
    return estimator


def _as_numbers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        values = labels.astype(np.float64)
    except ValueError:
        return labels
    return values.astype(np.int64) if (values == np.round(values)).all() else values


def _require_whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    if optional and value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}.")


def _require_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}.")


def _seed_of(random_state: Any) -> int:
    if random_state is None:
        return 1
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    _require_whole("random_state", random_state, 0)
    return int(random_state)


def _threads_of(n_threads: Any) -> int:
    _require_whole("n_threads", n_threads, 1, optional=True)
    return 0 if n_threads is None else int(n_threads)


def _require_rows(count: int) -> None:
    if count == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")


def _require_target(y: Any) -> None:
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")


def _require_same_length(X: Any, y: Any) -> None:
    count = _num_samples(X)
    if count != y.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: X has {count}, y {y.shape[0]}.")


def _set_weights(rows: _core.Rows, sample_weight: Any, X: Any) -> None:
    if sample_weight is None:
        return
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must not be 0 for all rows.")
    rows.set_weights(np.ascontiguousarray(weights))
