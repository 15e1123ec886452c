"""Recovery of low-rank matrices and signals from quadratic measurements."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.utils.validation import _check_y, check_is_fitted

from . import _core, _rows, _tables
from ._checks import check_integer, resolve_jobs
from ._explain import explain_rows
from ._factorization import check_same_length, check_target_given, set_relative_weights
from ._single_model import SingleModelEstimator, make_settings

Floats = npt.NDArray[np.float64]


Estimator = TypeVar("Estimator", bound="QuadraticMeasurements")


class QuadraticMeasurements(SingleModelEstimator):
    """Base class for measurements y = a'Ma with the vectors a in the rows of X."""

    _kind: str
    _rank: int

    def fit(self: Estimator, X: Any, y: Any, sample_weight: Any = None) -> Estimator:
        """Recover M from measurements.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_measurements, n_features)
            Measurement vectors a, one per row. They are neither centered nor scaled.
        y : array-like of shape (n_measurements,)
            Results of the measurements.
        sample_weight : array-like of shape (n_measurements,), optional
            Weights of the measurements, inversely proportional to the variances of their noise. Measurements of
            weight 0 are ignored.

        Returns
        -------
        estimator
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If X, y, ``sample_weight`` or a parameter is invalid.

        Warns
        -----
        ConvergenceWarning
            If ``fit_report_["status"]`` is not "converged".

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import MatrixSensing
        >>> A = np.random.default_rng(0).normal(size=(60, 5))
        >>> y = (A @ [1.0, 2.0, 0.0, 0.0, 1.0]) ** 2
        >>> model = MatrixSensing(rank=1).fit(A, y)
        >>> model.fit_report_["status"]
        'converged'
        """
        check_target_given(y)
        if sp.issparse(X):
            _rows.check_sparse(X)
        X = _tables.read_matrix(self, X, reset=not self._is_continued)
        y = np.require(_check_y(y, y_numeric=True, estimator=self), np.float64, ["C", "A"])
        check_same_length(X, y)
        rows = _rows.from_sparse(X) if sp.issparse(X) else _rows.from_array(X)
        rows.set_targets(y, [])
        weights = set_relative_weights(rows, sample_weight, y)
        self._set_model(self._train_model(rows, make_settings(self, self._kind, self._rank)), "the model")
        self._report_residual(y, self._predict(X), weights)
        return self

    def _count_unknowns(self) -> int:
        return self._rank * int(self.n_features_in_) - self._rank * (self._rank - 1) // 2

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R^2 of the predictions.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_measurements, n_features)
            Measurement vectors a, one per row.
        y : array-like of shape (n_measurements,)
            Results of the measurements.
        sample_weight : array-like of shape (n_measurements,), optional
            Weights of the measurements.

        Returns
        -------
        float
            1 - sum (y - f)^2 / sum (y - mean(y))^2 with the predictions f.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import MatrixSensing
        >>> A = np.random.default_rng(0).normal(size=(60, 5))
        >>> y = (A @ [1.0, 2.0, 0.0, 0.0, 1.0]) ** 2
        >>> round(MatrixSensing().fit(A[:40], y[:40]).score(A[40:], y[40:]), 6)
        1.0
        """
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def predict(self, X: Any) -> Floats:
        """Predict the results of measurements.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Arrow table of shape (n_measurements, n_features)
            Measurement vectors a, one per row.

        Returns
        -------
        ndarray of shape (n_measurements,)
            a'Ma for each row.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If X is invalid.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import MatrixSensing
        >>> A = np.random.default_rng(0).normal(size=(60, 5))
        >>> y = (A @ [1.0, 2.0, 0.0, 0.0, 1.0]) ** 2
        >>> bool(np.abs(MatrixSensing(rank=1).fit(A[:40], y[:40]).predict(A[40:]) - y[40:]).max() < 1e-6)
        True
        """
        check_is_fitted(self)
        return self._predict(_tables.read_matrix(self, X, reset=False))

    def explain(self, X: Any, top: Optional[int] = None) -> pd.DataFrame:
        """Return the terms M_jj a_j^2 and 2 M_jk a_j a_k of each predicted measurement.

        Parameters
        ----------
        X : array-like of shape (n_measurements, n_features)
            Measurement vectors a, one per row.
        top : int, optional
            Number of terms to list, by decreasing mean absolute value. The column '(other terms)' is the sum of the
            others. By default, all terms are listed.

        Returns
        -------
        pandas.DataFrame of shape (n_measurements, n_terms)
            Terms, which add up to ``predict(X)``. The columns are as for `FactorizationRegressor.explain`.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import MatrixSensing
        >>> A = np.random.default_rng(0).normal(size=(60, 5))
        >>> model = MatrixSensing(rank=1).fit(A, (A @ [1.0, 2.0, 0.0, 0.0, 1.0]) ** 2)
        >>> bool(np.allclose(model.explain(A).sum(axis=1), model.predict(A)))
        True
        """
        check_is_fitted(self)
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = _tables.read_matrix(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None)
        rename = None if names is None else lambda number: str(names[int(number)])
        rows = _rows.from_sparse(X) if sp.issparse(X) else _rows.from_array(X)
        predictor = _core.Predictor.from_bytes(self._model)
        return explain_rows(predictor, rows, resolve_jobs(self.n_jobs), index=index, top=top, rename=rename)

    def _predict(self, X: Any) -> Floats:
        result: Floats = ((X @ self.eigenvectors_) ** 2) @ self.eigenvalues_
        return result

    def _set_model(self, model: bytes, name: str) -> None:
        predictor = _core.Predictor.from_bytes(model, name)
        self._model = model
        self.eigenvalues_: Floats = np.array(predictor.inspect(0)["spectrum"])
        self.eigenvectors_: Floats = predictor.parameters()["factors"]

    def _saved_attributes(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names": None if names is None else list(names)}

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        self._set_model(model, name)
        self.n_features_in_ = self.eigenvectors_.shape[0]
        if attributes["feature_names"] is not None:
            self.feature_names_in_ = np.array(attributes["feature_names"], dtype=object)


def _available(errors: Floats, name: str) -> Floats:
    if errors.size == 0:
        raise AttributeError(
            f"{name} is not available: the measurements do not determine all unknowns, there are too many unknowns, or "
            "the estimator was loaded from a file."
        )
    return errors


class MatrixSensing(QuadraticMeasurements):
    """Recovery of a symmetric low-rank matrix M from measurements y = a'Ma.

    Parameters
    ----------
    rank : int, default=1
        Rank of M. The eigenvalues may have any sign.
    random_state : int, RandomState instance or None, default=None
        Seed of the random start; None is the seed 1.
    n_jobs : int or None, default=-1
        Number of threads. -1: all cores; None: 1, or the number that `joblib.parallel_config` sets, as in scikit-learn.
    warm_start : bool, default=False
        If True, ``fit`` continues from the fitted model with new measurements, by one pass of the Kalman filter. There is then no
        diagnosis (``fit_report_["status"]`` is None).

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (rank,)
        Eigenvalues of M by decreasing absolute value.
    eigenvectors_ : ndarray of shape (n_features, rank)
        Orthonormal eigenvectors of M, in columns.
    matrix_ : ndarray of shape (n_features, n_features)
        M.
    matrix_std_ : ndarray of shape (n_features, n_features)
        Standard errors of the entries of M.
    n_features_in_ : int
        Number of features in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.
    fit_report_ : dict
        Diagnosis of the fit. ``status`` is "converged", "too_few_rows", "not_identifiable", "rank_too_small",
        "inconsistent_sign", "local_minimum" or "outliers"; None if it is not available. ``message`` has the same in
        words, with what to change. ``noise`` is the estimated standard deviation of the noise, 0 for exact fits.
        ``residual`` is the root mean square of all residuals, ``degrees_of_freedom`` the number of unknowns, and
        ``outliers`` the number of excluded measurements. Empty for loaded estimators.
    summary_ : dict
        Summary of the training run, as for `FactorizationRegressor`.

    See Also
    --------
    PhaseRetrieval : Recovery of a signal, M = x x'.
    InductiveMatrixCompletion : Recovery of a rectangular matrix.

    Notes
    -----
    Rank-one matrix sensing is the model of Lin and Ye [1]_ without linear terms. M has
    rank * n_features - rank * (rank - 1) / 2 unknowns. Without noise and for random vectors a, 1.5 times as many
    measurements as unknowns are sufficient for exact recovery at any condition number of M. The estimate minimizes the
    squared residuals from a start that is computed by iteratively reweighted least squares on the log-determinant of M,
    or by relaxed reflections if all values of y have one sign. A zero residual of more measurements than unknowns
    confirms the solution. With noise of standard deviation s, the error is proportional to s / sqrt(n_measurements).
    Outliers in y are found by their residuals and excluded, if there are at least two measurements per unknown.

    References
    ----------
    .. [1] M. Lin and J. Ye, "A Non-convex One-Pass Framework for Generalized Factorization Machine and Rank-One Matrix
       Sensing", Advances in Neural Information Processing Systems 29, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import MatrixSensing
    >>> random = np.random.default_rng(0)
    >>> M = np.diag([2.0, -1.0] + [0.0] * 18)
    >>> A = random.normal(size=(100, 20))
    >>> estimate = MatrixSensing(rank=2).fit(A, np.einsum("ij,jk,ik->i", A, M, A)).matrix_
    >>> bool(np.abs(estimate - M).max() < 1e-6)
    True
    """

    _kind = "sensing"

    def __init__(
        self,
        rank: int = 1,
        *,
        random_state: Optional[int] = None,
        n_jobs: Optional[int] = -1,
        warm_start: bool = False,
    ) -> None:
        self.rank = rank
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def _rank(self) -> int:  # type: ignore[override]
        check_integer("rank", self.rank, 1)
        return int(self.rank)

    @property
    def matrix_(self) -> Floats:
        """M, an array of shape (n_features, n_features)."""
        check_is_fitted(self)
        result: Floats = (self.eigenvectors_ * self.eigenvalues_) @ self.eigenvectors_.T
        return result

    @property
    def matrix_std_(self) -> Floats:
        """Standard errors of the entries of M, by the Laplace approximation at the fit.

        Raises
        ------
        AttributeError
            If they are not available: the rows do not determine M, there are more than about 3,000 unknowns, or the
            estimator was loaded from a file.
        """
        check_is_fitted(self)
        return _available(self._matrix_errors, "matrix_std_").reshape(self.n_features_in_, self.n_features_in_)


class PhaseRetrieval(QuadraticMeasurements):
    """Recovery of a real signal x, up to its sign, from measurements y = (a'x)^2.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Seed of the random start; None is the seed 1.
    n_jobs : int or None, default=-1
        Number of threads. -1: all cores; None: 1, or the number that `joblib.parallel_config` sets, as in scikit-learn.
    warm_start : bool, default=False
        If True, ``fit`` continues from the fitted model with new measurements, by one pass of the Kalman filter. There is then no
        diagnosis (``fit_report_["status"]`` is None).

    Attributes
    ----------
    signal_ : ndarray of shape (n_features,)
        The signal x. The signal -x gives the same measurements.
    signal_std_ : ndarray of shape (n_features,)
        Standard errors of the entries of the signal.
    eigenvalues_ : ndarray of shape (1,)
        The squared norm of the signal.
    eigenvectors_ : ndarray of shape (n_features, 1)
        The signal divided by its norm.
    n_features_in_ : int
        Number of features in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.
    fit_report_ : dict
        Diagnosis of the fit. ``status`` is "converged", "too_few_rows", "not_identifiable", "rank_too_small",
        "inconsistent_sign", "local_minimum" or "outliers"; None if it is not available. ``message`` has the same in
        words, with what to change. ``noise`` is the estimated standard deviation of the noise, 0 for exact fits.
        ``residual`` is the root mean square of all residuals, ``degrees_of_freedom`` the number of unknowns, and
        ``outliers`` the number of excluded measurements. Empty for loaded estimators.
    summary_ : dict
        Summary of the training run, as for `FactorizationRegressor`.

    See Also
    --------
    MatrixSensing : Recovery of a symmetric matrix of higher rank.

    Notes
    -----
    Without noise and for random vectors a, 1.5 times as many measurements as features are sufficient for exact
    recovery. The start is computed by relaxed-reflect-reflect iterations, u += 0.5 (P_X(2 P_y u - u) - P_y u), with the
    projections P_X onto the range of X and P_y onto the vectors with |u| = sqrt(y). Gauss-Newton steps follow. Outliers
    in y are found by their residuals and excluded, if there are at least two measurements per feature.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import PhaseRetrieval
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=30)
    >>> A = random.normal(size=(120, 30))
    >>> estimate = PhaseRetrieval().fit(A, (A @ x) ** 2).signal_
    >>> bool(np.abs(PhaseRetrieval.align(estimate, x) - x).max() < 1e-6)
    True
    """

    _kind = "phase"
    _rank = 1

    def __init__(
        self, *, random_state: Optional[int] = None, n_jobs: Optional[int] = -1, warm_start: bool = False
    ) -> None:
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def signal_(self) -> Floats:
        """The signal, an array of shape (n_features,)."""
        check_is_fitted(self)
        result: Floats = np.sqrt(np.maximum(self.eigenvalues_[0], 0)) * self.eigenvectors_[:, 0]
        return result

    @property
    def signal_std_(self) -> Floats:
        """Standard errors of the entries of the signal, by the Laplace approximation at the fit.

        Raises
        ------
        AttributeError
            If they are not available: the rows do not determine the signal, there are more than about 3,000 unknowns,
            or the estimator was loaded from a file.
        """
        check_is_fitted(self)
        return _available(self._factor_errors, "signal_std_")

    @staticmethod
    def align(signal: Any, reference: Any) -> Floats:
        """Return the signal or its negative, whichever is closer to a reference.

        Parameters
        ----------
        signal : array-like of real numbers
            Estimated signal.
        reference : array-like of real numbers
            Array of the same shape.

        Returns
        -------
        ndarray
            ``signal`` if its inner product with ``reference`` is not negative, else ``-signal``.

        Raises
        ------
        ValueError
            If an array is complex, or if the shapes differ.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import PhaseRetrieval
        >>> PhaseRetrieval.align(np.array([1.0, -2.0]), np.array([-1.0, 2.0]))
        array([-1.,  2.])
        """
        for name, values in (("signal", signal), ("reference", reference)):
            if np.iscomplexobj(values):
                raise ValueError(f"{name} must be real, got complex numbers; PhaseRetrieval recovers real signals.")
        signal, reference = np.asarray(signal, dtype=np.float64), np.asarray(reference, dtype=np.float64)
        if signal.shape != reference.shape:
            raise ValueError(
                f"signal and reference must have the same shape, got {signal.shape} and {reference.shape}."
            )
        aligned: Floats = -signal if np.vdot(signal, reference) < 0 else signal
        return aligned
