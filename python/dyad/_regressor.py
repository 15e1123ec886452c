"""Second-order regression as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union, overload

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_y, check_is_fitted

from . import _core, _dask
from ._base import RegressorMixin
from ._checks import check_target_range
from ._encoding import CategoricalFeatures, warn_about_identifiers
from ._factorization import (
    BaseFactorization,
    Callback,
    Diagonal,
    Solver,
    check_same_length,
    check_target_given,
    set_weights,
)
from ._input import InputRows
from ._statistics import Statistics

Floats = npt.NDArray[np.float64]


class FactorizationRegressor(RegressorMixin, BaseFactorization):
    """Second-order regression: functions of columns and pairs, or a low-rank matrix of interactions.

    The default model of tables is y = b + sum_j f_j(x_j) + sum_ij f_ij(x_i, x_j) with smooth functions (solver 'anova').
    With ``rank``, and for sparse data, it is y = b + w'x + x'Mx, where M has the rank ``rank`` and eigenvalues of any sign.
    There is no step size, and the strength of the regularization is selected from the data.

    Parameters
    ----------
    rank : int, optional
        Rank of M. Selects a low-rank model. By default, tables are fitted by the solver 'anova', which has no rank, and
        low-rank models have the rank 8, or the number of features if that is smaller.
    solver : {'auto', 'anova', 'moment', 'kalman', 'newton', 'sampling', 'variational'}, default='auto'
        Algorithm.

        - 'auto': 'anova' for arrays and tables with a numeric column, at most 200 columns and at most 64 levels per
          categorical column, unless ``rank``, ``diagonal``, ``max_iter`` or ``half_life`` is given. Otherwise 'kalman',
          then 'sampling' (sparse rows, categories) or 'newton' (other rows) if that decreases the loss of held-out rows.
        - 'anova': smoothing-spline ANOVA for arrays and tables: functions of columns and of pairs of columns, whose
          smoothness is estimated by restricted maximum likelihood.
        - 'kalman': online Bayesian updates with a variance per parameter. Reads each row once.
        - 'newton': Levenberg-Marquardt with a regularization path.
        - 'sampling': Gibbs sampling with learned priors, for sparse rows and categories. The model is the average of the
          samples. With numeric targets, each category has its own noise variance (`noise_factors`).
        - 'variational': mean-field variational inference by coordinate updates, for sparse rows.
        - 'moment': method of moments of Lin and Ye [1]_. Reads each row once.
    curves : {'auto', 'off'}, default='auto'
        'off' restricts the solver 'anova' to weights, squares and products.
    diagonal : {'auto', 'tied', 'zero', 'free'}, default='auto'
        Coefficient of the square x_j^2 of low-rank models.

        - 'auto': 'free' with numeric columns, 'zero' with categories and indicators only.
        - 'tied': M_jj, as in the generalized factorization machine of Lin and Ye [1]_.
        - 'zero': 0, as in the classic factorization machine.
        - 'free': one parameter per feature, independent of M.
    categorical_features : 'from_dtype', or array-like of str, int or bool, default='from_dtype'
        Categorical columns besides those of strings and categories, which are always categorical: names, indices, or a mask with
        one boolean per column. Use it for identifiers that are integers. Their categories are named by the numbers.
    date_encoding : {'calendar'}, optional
        Encoding of columns of dates and times, which are refused by default. 'calendar' replaces a column by its number of
        days since 1970, the day of the year, the weekday (a category), and the hour if the training rows have one.
    target_range : tuple of two floats, optional
        Lower and upper bound of the targets, such as (1, 5) for ratings. Targets at a bound are treated as censored,
        and predictions are clipped. By default, the bounds are estimated from the data.
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
        Called with ``(stage, rows, level, loss)`` during training. ``stage`` is 'pass' in the first pass, with the
        number of rows so far and the progressive loss, and 'multi_pass' afterwards, with the regularization level or
        sweep and the loss of held-out rows. ``loss`` is NaN if it was not measured. An exception ends training.

    Attributes
    ----------
    n_features_in_ : int
        Number of features in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.
    summary_ : dict
        Summary of the training run: ``rows``, ``all_rows`` (including earlier calls), ``seconds``, ``origin`` (how the
        model was estimated), ``noise`` (standard deviation of the residuals), ``passes``, ``solver``, ``progressive``
        (loss of the first pass, each row predicted before it was learned; NaN with 'anova'), ``metrics`` (loss of the last
        rows of the first pass; 'anova': estimate for other rows by generalized cross-validation), ``trace`` (that loss by number of rows) and
        ``warnings``. Empty for a model that was loaded from a file.

    See Also
    --------
    FactorizationClassifier : Classification with the same model.
    Learner : Online learner of one row per call.

    Notes
    -----
    With 'newton', the parameters (b, w, squares, A) with M = A diag(s) A' and signs s minimize

    sum_i weight_i (y_i - f(x_i))^2 / 2 + ridge_w (|w|^2 + |squares|^2) / 2 + ridge_A |A|^2 / 2.

    The ridge decreases along a path; its level is selected by cross-validation or by held-out rows. With 'auto' and
    'newton' and at most 4,096 rows, weights act as exact repetition counts and the row order has no effect.

    With 'kalman', each parameter theta has a mean and a variance P. A row with prediction f and gradient g = df/dtheta
    updates theta += P g (y - f) / S and P -= (P g)^2 / S with S = s2 + sum P g^2 and the noise variance s2.

    Numeric columns are standardized internally. Sparse matrices are not.

    References
    ----------
    .. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
       Sensing", Advances in Neural Information Processing Systems 29, 2016.

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
        rank: Optional[int] = None,
        *,
        solver: Solver = "auto",
        curves: Literal["auto", "off"] = "auto",
        diagonal: Diagonal = "auto",
        categorical_features: CategoricalFeatures = "from_dtype",
        date_encoding: Optional[Literal["calendar"]] = None,
        target_range: Optional[tuple[float, float]] = None,
        max_iter: Optional[int] = None,
        samples: Optional[int] = None,
        half_life: Optional[int] = None,
        prior_scale: Optional[float] = None,
        max_bytes: float = 1e9,
        precision: Literal["double", "single"] = "double",
        random_state: Optional[int] = None,
        n_jobs: Optional[int] = -1,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Optional[Callback] = None,
    ) -> None:
        super().__init__(
            rank,
            solver=solver,
            curves=curves,
            diagonal=diagonal,
            categorical_features=categorical_features,
            date_encoding=date_encoding,
            max_iter=max_iter,
            samples=samples,
            half_life=half_life,
            prior_scale=prior_scale,
            max_bytes=max_bytes,
            precision=precision,
            random_state=random_state,
            n_jobs=n_jobs,
            warm_start=warm_start,
            verbose=verbose,
            callback=callback,
        )
        self.target_range = target_range

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        # The tests of scikit-learn have about 200 rows, too few for the first step of the moment solver.
        tags.regressor_tags.poor_score = self.solver == "moment"
        return tags

    def _settings(self) -> _core.Settings:
        settings = super()._settings()
        settings.range = check_target_range(self.target_range)
        return settings

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationRegressor:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Each value of a column of strings or categories becomes an indicator feature. Sparse matrices are not
            scaled.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, which act as repetition counts. Rows of weight 0 are skipped.

        Returns
        -------
        FactorizationRegressor
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
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 0] - X[:, 1] * X[:, 2]
        >>> FactorizationRegressor(rank=1).fit(X, y)
        FactorizationRegressor(rank=1)
        """
        return self._fit(X, y, sample_weight, self._settings(), self._continues_training(is_partial=False))

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> FactorizationRegressor:
        """Update the model with further rows.

        Each call is one pass. Exception: the first call with the solver 'newton' or 'variational' is multi-pass.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. The rows of the first call determine the scales of the columns; they should be a random sample of at
            least a thousand rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as in `fit`.

        Returns
        -------
        FactorizationRegressor
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If a parameter on which the model depends has changed, or if X, y or ``sample_weight`` is invalid.

        Notes
        -----
        Each call reads and writes the whole model. For single rows, `Learner` is faster.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 0] - X[:, 1] * X[:, 2]
        >>> model = FactorizationRegressor(rank=1)
        >>> for first in range(0, 200, 100):
        ...     _ = model.partial_fit(X[first : first + 100], y[first : first + 100])
        >>> model.summary_["all_rows"]
        200
        """
        return self._fit(X, y, sample_weight, self._one_pass_settings(), self._continues_training(is_partial=True))

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, settings: _core.Settings, is_continued: bool
    ) -> FactorizationRegressor:
        data = self._read_training_rows(X, y, sample_weight, reset=not is_continued)
        self._set_models([self._train_model(data.rows, settings, self._models[0] if is_continued else None)])
        self._add_statistics(data, sample_weight, is_continued)
        return self

    def _read_training_rows(self, X: Any, y: Any, sample_weight: Any, reset: bool) -> InputRows:
        check_target_given(y)
        data = self._read_rows(X, reset=reset)
        y, sample_weight = _dask.collect(y), _dask.collect(sample_weight)
        y = np.require(_check_y(y, y_numeric=True, estimator=self), np.float64, ["C", "A"])
        check_same_length(data.values, y)
        if reset:
            warn_about_identifiers(data.integer_columns, y)
        data.rows.set_targets(y, [])
        set_weights(data.rows, sample_weight, y)
        return data

    def partial_statistics(self, X: Any, y: Any, sample_weight: Any = None) -> Statistics:
        """Compute the statistics of one partition of the rows for a distributed iteration of the moment solver.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows of the partition. Categories and columns that the model does not contain are ignored. The rows of
            the first `partial_fit` should therefore be a random sample.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights, as in `fit`.

        Returns
        -------
        Statistics
            Sums over the rows. The sum over all partitions is the argument of `apply_statistics`.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If ``solver`` is not 'moment', or if X, y or ``sample_weight`` is invalid.

        See Also
        --------
        apply_statistics : Update the model.

        Notes
        -----
        One iteration of distributed training consists of `partial_statistics` on each worker, the addition of the
        results, `apply_statistics` on the driver, and the distribution of the updated estimator to the workers. The
        model does not depend on the partitioning, up to rounding errors. The size of the statistics is proportional to
        the size of the model. This method does not change the model.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 0] - X[:, 1] * X[:, 2]
        >>> model = FactorizationRegressor(rank=1, solver="moment").partial_fit(X, y)
        >>> model.partial_statistics(X, y).rows
        200
        """
        check_is_fitted(self)
        rows = self._read_training_rows(X, y, sample_weight, reset=False).rows
        assert isinstance(rows, _core.Rows)
        return Statistics(_core.partial_statistics(self._models[0], rows, self._threads))

    def apply_statistics(self, statistics: Statistics) -> FactorizationRegressor:
        """Update the model with the statistics of all partitions.

        Parameters
        ----------
        statistics : Statistics
            Sum of the results of `partial_statistics` of this model over all partitions.

        Returns
        -------
        FactorizationRegressor
            The estimator itself.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If the statistics belong to another model or contain no rows.

        Notes
        -----
        Iterations alternate: one proposes a step, and the next one evaluates its length and takes it. Afterwards,
        ``summary_`` contains ``rmse`` (of the model before the update), ``is_line_search`` (whether the next iteration
        evaluates a step), ``steps_tried`` and ``steps_taken``.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 0] - X[:, 1] * X[:, 2]
        >>> model = FactorizationRegressor(rank=1, solver="moment").partial_fit(X, y)
        >>> parts = [model.partial_statistics(X[i::2], y[i::2]) for i in range(2)]  # each on one worker
        >>> model.apply_statistics(sum(parts)).summary_["steps_tried"] >= 0
        True
        """
        check_is_fitted(self)
        self._set_models([_core.apply_statistics(self._models[0], statistics._data)])
        return self

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Floats: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Floats, Floats]: ...

    @overload
    def predict(self, X: Any, return_std: bool) -> Union[Floats, tuple[Floats, Floats]]: ...

    def predict(self, X: Any, return_std: bool = False) -> Union[Floats, tuple[Floats, Floats]]:
        """Predict the targets.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_samples, n_features)
            Rows. Categories that were not in the training rows contribute 0.
        return_std : bool, default=False
            If True, return the standard deviations, too.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            Expected targets.
        y_std : ndarray of shape (n_samples,)
            Standard deviations of the targets, sqrt(s2 + v), with the variance s2 of the noise and the variance v due
            to the uncertainty of the parameters. Only returned if ``return_std`` is True.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid, or if ``return_std`` is True and the model of the solver 'moment' has no variances.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import FactorizationRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> y = X[:, 0] - X[:, 1] * X[:, 2]
        >>> values, deviations = FactorizationRegressor(rank=2).fit(X, y).predict(X, return_std=True)
        >>> bool(np.abs(values - y).max() < 0.01)
        True
        """
        rows = self._make_prediction_rows(X)
        predictions: Union[Floats, tuple[Floats, Floats]] = self._predictors[0].predict(
            rows, bool(return_std), self._threads
        )
        return predictions
