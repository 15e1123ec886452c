"""Second-order classification as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Optional, Union, overload

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from . import _core, _dask, _json_values
from ._base import ClassifierMixin
from ._encoding import warn_about_identifiers
from ._factorization import BaseFactorization, check_same_length, check_target_given, set_weights

Floats = npt.NDArray[np.float64]


class FactorizationClassifier(ClassifierMixin, BaseFactorization):
    """Second-order classification: functions of columns and pairs, or a low-rank matrix of interactions.

    The log-odds of the positive class are those of `FactorizationRegressor`: smooth functions of columns and pairs for
    tables, or b + w'x + x'Mx with a matrix M of rank ``rank`` and eigenvalues of any sign.
    For more than two classes, one model of each class against the others is fitted. The probabilities are the softmax of
    their log-odds, multiplied by a temperature that minimizes the log-loss of held-out rows.

    Parameters
    ----------
    rank : int, optional
        Rank of M. Selects a low-rank model. By default, tables are fitted by the solver 'anova', which has no rank, and
        low-rank models have the rank 8, or the number of features if that is smaller.
    solver : {'auto', 'anova', 'moment', 'kalman', 'newton', 'sampling', 'variational'}, default='auto'
        Algorithm, as for `FactorizationRegressor`.
    curves : {'auto', 'off'}, default='auto'
        'off' restricts the solver 'anova' to weights, squares and products.
    diagonal : {'auto', 'tied', 'zero', 'free'}, default='auto'
        Coefficient of the square x_j^2, as for `FactorizationRegressor`.
    categorical_features : 'from_dtype', or array-like of str, int or bool, default='from_dtype'
        Categorical columns besides those of strings and categories, which are always categorical: names, indices, or a mask with
        one boolean per column. Use it for identifiers that are integers. Their categories are named by the numbers.
    date_encoding : {'calendar'}, optional
        Encoding of columns of dates and times, which are refused by default. 'calendar' replaces a column by its number of
        days since 1970, the day of the year, the weekday (a category), and the hour if the training rows have one.
    max_iter : int, optional
        Number of passes: the first pass and ``max_iter`` - 1 regularization levels or sweeps. By default, training
        continues while the loss of held-out rows decreases.
    samples : int, optional
        Number of samples of the solver 'sampling'. By default, until the estimated excess of the held-out loss is 0.1%, at
        most 300.
    half_life : int, optional
        Number of rows after which the weight of a row is halved, for drifting data. By default, rows keep their weight.
    prior_scale : float, optional
        Solver 'kalman': multiplies the initial variances of the prior, from which the variances of each column are
        estimated along the stream. Values below 1 regularize the first rows more. By default, the initial variances are
        derived from the first rows. The other solvers select the strength of the regularization from the data.
    max_bytes : float, default=1e9
        Bytes for cached rows. 0 restricts training to one pass.
    precision : {'double', 'single'}, default='double'
        Floating-point type of the stored parameters.
    random_state : int, RandomState instance or None, default=None
        Seed of the random start; None is the seed 1. The same data and seed give the same model.
    n_jobs : int or None, default=-1
        Number of threads. -1: all cores; None: 1, or the number that `joblib.parallel_config` sets, as in scikit-learn.
    warm_start : bool, default=False
        If True, ``fit`` continues from the fitted model. Parameters on which the model depends must not change.
    verbose : int, default=0
        If positive, progress is printed.
    callback : callable, optional
        Called with ``(stage, rows, level, loss)`` during training, as for `FactorizationRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels. With two classes, the second one is the positive class.
    temperature_ : float
        Factor on the log-odds of the classes before the softmax. Only for more than two classes.
    n_features_in_ : int
        Number of features in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.
    summary_ : dict or list of dict
        Summary of the training run, as for `FactorizationRegressor`. With more than two classes, a list with the
        summary of each model.

    See Also
    --------
    FactorizationRegressor : Regression with the same model.
    Learner : Online learner of one row per call.

    Notes
    -----
    The log-odds minimize the sum of the weighted log-losses and a ridge penalty, as for `FactorizationRegressor`. A
    low-rank model is a constant unless it improves the log-likelihood of rows that were not used for training by at least
    log 20 = 3 nats over the best constant.

    With more than two classes and at least 100 rows, held-out rows determine the temperature: five folds below 500 rows,
    otherwise a fifth of the rows, and at most 20,000 rows. With ``solver='auto'``, they also select between the solvers
    'anova' and 'sampling' for tables of up to 32 columns; wider tables of up to 2e6 numbers are fitted by 'sampling'.

    References
    ----------
    .. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
       Sensing", Advances in Neural Information Processing Systems 29, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import FactorizationClassifier
    >>> X = np.random.default_rng(0).normal(size=(500, 4))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> bool(FactorizationClassifier(rank=2).fit(X, y).score(X, y) > 0.95)
    True
    """

    classes_: npt.NDArray[Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Each value of a column of strings or categories becomes an indicator feature. Sparse matrices are not
            scaled.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, which act as repetition counts. Rows of weight 0 are skipped.

        Returns
        -------
        FactorizationClassifier
            The fitted estimator itself.

        Raises
        ------
        TypeError
            If X is a table of an unsupported library.
        ValueError
            If a parameter or a value of X, y or ``sample_weight`` is invalid.

        Warns
        -----
        ConvergenceWarning
            If the solver reports a problem, for example a constant model.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
        >>> FactorizationClassifier(rank=2).fit(X, y).classes_.tolist()
        ['other', 'same']
        """
        return self._fit(X, y, sample_weight, None, self._settings(), self._continues_training(is_partial=False))

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> FactorizationClassifier:
        """Update the model with further rows.

        Each call is one pass. Exception: the first call with the solver 'newton' or 'variational' is multi-pass.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. The rows of the first call determine the scales of the columns; they should be a random sample of at
            least a thousand rows.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), optional
            All class labels of this and later calls. Required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as in `fit`.

        Returns
        -------
        FactorizationClassifier
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If ``classes`` is missing in the first call or differs in a later call, if y contains another class, or if a
            parameter on which the model depends has changed.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
        >>> model = FactorizationClassifier(rank=2).partial_fit(X[:100], y[:100], classes=["same", "other"])
        >>> model.partial_fit(X[100:], y[100:]).summary_["all_rows"]
        200
        """
        is_continued = self._continues_training(is_partial=True)
        if not is_continued and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if is_continued and classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes must equal those of the first call to partial_fit, {self.classes_.tolist()}, got "
                f"{np.unique(classes).tolist()}."
            )
        return self._fit(X, y, sample_weight, classes, self._one_pass_settings(), is_continued)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, settings: _core.Settings, is_continued: bool
    ) -> FactorizationClassifier:
        check_target_given(y)
        data = self._read_rows(X, reset=not is_continued)  # X is validated before y, as in scikit-learn
        rows = data.rows
        y, sample_weight = _dask.collect(y), _dask.collect(sample_weight)
        y = column_or_1d(y, warn=True)
        check_same_length(data.values, y)
        check_classification_targets(y)
        if not is_continued:
            self.classes_ = np.unique(y if classes is None else classes)
        is_known = np.isin(y, self.classes_)
        if not np.all(is_known):
            raise ValueError(
                f"y must contain the classes of the first call only, {self.classes_.tolist()}, got "
                f"{np.unique(y[~is_known]).tolist()[0]!r}."
            )
        if not is_continued:
            warn_about_identifiers(data.integer_columns, np.searchsorted(self.classes_, y).astype(np.float64))
        set_weights(rows, sample_weight, y)
        if len(self.classes_) > 2:
            codes = np.searchsorted(self.classes_, y).astype(np.float64)
            rows.set_targets(codes, [str(label) for label in self.classes_])
            self._set_classes(*self._train_model(rows, settings, self._container if is_continued else None))
            self._add_statistics(data, sample_weight, is_continued)
            return self
        positive = self.classes_[-1]
        rows.set_targets((y == positive).astype(np.float64), self._label_names())
        with warnings.catch_warnings():
            if len(self.classes_) == 1:
                warnings.simplefilter("ignore", ConvergenceWarning)
            self._set_models([self._train_model(rows, settings, self._models[0] if is_continued else None)])
        self._add_statistics(data, sample_weight, is_continued)
        self.__dict__.pop("temperature_", None)
        return self

    def _set_classes(self, container: bytes, summary: dict[str, Any]) -> None:
        """Store the model of more than two classes and the summaries of its models."""
        _, parts = _core.unpack_container(container, "the model")
        self._container = container
        self._class_predictor_cache = _core.ClassPredictor.from_bytes(container)
        self.temperature_ = self._class_predictor_cache.temperature()
        self._set_models(list(zip(parts, summary.get("classes", [{}] * len(parts)))))

    @property
    def _class_predictor(self) -> _core.ClassPredictor:
        """Predictor of more than two classes, created at first use."""
        if "_class_predictor_cache" not in self.__dict__:
            self._class_predictor_cache = _core.ClassPredictor.from_bytes(self._container)
        return self._class_predictor_cache

    def _saved_parts(self) -> list[bytes]:
        return [self._container] if len(self.classes_) > 2 else self._models

    def _saved_attributes(self) -> dict[str, Any]:
        return {"classes": _json_values.encode_labels(self.classes_)}

    def _restore(self, predictor: _core.Predictor, attributes: Optional[dict[str, Any]], content: bytes) -> None:
        if _core.is_class_file(content):
            self._set_classes(content, {})
        if attributes is None:
            self.classes_ = _parse_labels(
                self._class_predictor.labels() if len(self._models) > 1 else predictor.labels()
            )
            return
        self.classes_ = _json_values.decode_labels(attributes["classes"])
        count = len(self.classes_)
        if len(self._models) != (count if count > 2 else 1):
            raise ValueError(f"it has {len(self._models)} models for {count} classes")
        if count > 2 and not hasattr(self, "_container"):  # files of development versions have no temperature
            labels = [str(label) for label in self.classes_]
            self._set_classes(_core.pack_classes(labels, self._models, 1.0, 4.0), {})

    def _label_names(self) -> list[str]:
        """Return the names of the negative and the positive class in the file of a model of at most two classes."""
        if len(self.classes_) == 2:
            return [str(value) for value in self.classes_]
        name = str(self.classes_[0])
        return [f"not {name}", name]

    @overload
    def predict_proba(self, X: Any, return_std: Literal[False] = False) -> Floats: ...

    @overload
    def predict_proba(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...

    @overload
    def predict_proba(self, X: Any, return_std: bool) -> Union[Floats, tuple[Floats, Floats]]: ...

    def predict_proba(self, X: Any, return_std: bool = False) -> Union[Floats, tuple[Floats, Floats]]:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Categories that were not in the training rows contribute 0.
        return_std : bool, default=False
            If True, return the standard deviations of the probabilities, too.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``. For more than two classes, the softmax of `decision_function`.
        std : ndarray of shape (n_samples, n_classes)
            Standard deviations of the probabilities. Only returned if ``return_std`` is True. For more than two
            classes, the log-odds of the classes are treated as independent.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid, or if ``return_std`` is True and the model of the solver 'moment' has no variances.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
        >>> FactorizationClassifier(rank=2).fit(X, y).predict_proba([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]).round(2)
        array([[0., 1.],
               [1., 0.]])
        """
        rows = self._make_prediction_rows(X)
        if len(self.classes_) > 2:
            return self._class_predictor.predict(rows, return_std, self._threads)  # type: ignore[call-overload,no-any-return]
        if return_std:
            positive, deviations = self._predictors[0].predict(rows, True, self._threads)
            if len(self.classes_) == 1:
                return np.ones((len(positive), 1)), np.zeros((len(positive), 1))
            return np.column_stack([1 - positive, positive]), np.column_stack([deviations, deviations])
        positive = self._predictors[0].predict(rows, False, self._threads)
        if len(self.classes_) == 1:
            return np.ones((len(positive), 1))
        return np.column_stack([1 - positive, positive])

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Categories that were not in the training rows contribute 0.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Log-odds of the second class; for more than two classes, the log-odds of each class against the others
            times ``temperature_``, whose softmax is `predict_proba`.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
        >>> FactorizationClassifier(rank=2).fit(X, y).decision_function([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]) > 0
        array([ True, False])
        """
        rows = self._make_prediction_rows(X)
        if len(self.classes_) > 2:
            return self._class_predictor.predict_scores(rows, self._threads)
        return self._predictors[0].predict_log_odds(rows, self._threads)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the classes.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Categories that were not in the training rows contribute 0.

        Returns
        -------
        ndarray of shape (n_samples,)
            Class of the largest probability for each row.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
        >>> FactorizationClassifier(rank=2).fit(X, y).predict([[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]).tolist()
        ['same', 'other']
        """
        decision = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.repeat(self.classes_, decision.shape[0])
        indices = (decision > 0).astype(int) if decision.ndim == 1 else decision.argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[indices]
        return predicted


def _parse_labels(labels: list[str]) -> npt.NDArray[Any]:
    """Convert class labels of the command line to numbers if all of them have the format of Python's numbers."""
    for kind in (int, float):
        try:
            values = [kind(label) for label in labels]
        except ValueError:
            continue
        if all(label in (f"{value}", f"{value:.17g}") for label, value in zip(labels, values)):
            return np.array(values)
    return np.array(labels)
