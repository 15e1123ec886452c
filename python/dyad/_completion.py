"""Inductive matrix completion as an estimator."""

from __future__ import annotations

from typing import Any, Literal, Optional, Union, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_array, check_is_fitted

from . import _core, _rows, _tables
from ._checks import check_integer, resolve_jobs
from ._explain import explain_rows
from ._factorization import set_relative_weights
from ._single_model import SingleModelEstimator, make_settings

Floats = npt.NDArray[np.float64]


class InductiveMatrixCompletion(SingleModelEstimator):
    """Completion of a matrix from the features of its rows and columns.

    The entry (i, j) is modeled as b + w'x_i + v'z_j + x_i' M z_j with the features x_i of row i, the features z_j of
    column j, and a matrix M of low rank. Rows and columns without observed entries can be predicted.

    Parameters
    ----------
    rank : int, default=4
        Rank of M. Larger values are reduced to the number of row features or of column features.
    random_state : int, RandomState instance or None, default=None
        Seed of the random start; None is the seed 1.
    n_jobs : int or None, default=-1
        Number of threads. -1: all cores; None: 1, or the number that `joblib.parallel_config` sets, as in scikit-learn.
    warm_start : bool, default=False
        If True, ``fit`` continues from the fitted model with new entries, by one pass of the Kalman filter. There is then
        no diagnosis (``fit_report_["status"]`` is None).

    Attributes
    ----------
    matrix_ : ndarray of shape (n_row_features_, n_column_features_)
        M, in the units of the features.
    intercept_ : float
        b.
    row_coef_ : ndarray of shape (n_row_features_,)
        w.
    column_coef_ : ndarray of shape (n_column_features_,)
        v.
    n_row_features_ : int
        Number of row features in ``fit``, d1.
    n_column_features_ : int
        Number of column features in ``fit``, d2.
    feature_names_in_ : ndarray of shape (n_row_features_ + n_column_features_,)
        Names of the row features and of the column features, if both are tables with names.
    fit_report_ : dict
        Diagnosis of the fit. ``status`` is "converged", "too_few_rows", "not_identifiable", "rank_too_small",
        "inconsistent_sign", "local_minimum" or "outliers"; None if it is not available. ``message`` has the same in
        words, with what to change. ``noise`` is the estimated standard deviation of the noise, 0 for exact fits.
        ``residual`` is the root mean square of all residuals, ``degrees_of_freedom`` the number of unknowns, and
        ``outliers`` the number of excluded entries. Empty for loaded estimators.
    summary_ : dict
        Summary of the training run, as for `FactorizationRegressor`.

    See Also
    --------
    MatrixSensing : Recovery of a symmetric matrix from quadratic measurements.

    Notes
    -----
    M has rank * (d1 + d2 - rank) degrees of freedom. Without noise and for random features, M is recovered exactly from
    a slightly larger number of entries.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import InductiveMatrixCompletion
    >>> random = np.random.default_rng(0)
    >>> X, Z = random.normal(size=(50, 6)), random.normal(size=(40, 5))
    >>> full = X @ np.outer(random.normal(size=6), random.normal(size=5)) @ Z.T
    >>> i, j = random.integers(40, size=300), random.integers(40, size=300)
    >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j])
    >>> bool(np.abs(model.predict(X, Z) - full)[40:].max() < 1e-3)  # rows without observed entries
    True

    The entries can also be those of a matrix with NaN, or the stored entries of a sparse matrix:

    >>> partial = np.where(random.random(full.shape) < 0.2, full, np.nan)
    >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, matrix=partial)
    >>> bool(np.abs(model.predict(X, Z) - full).max() < 1e-3)
    True
    """

    n_row_features_: int
    n_column_features_: int

    def __init__(
        self,
        rank: int = 4,
        *,
        random_state: Optional[int] = None,
        n_jobs: Optional[int] = -1,
        warm_start: bool = False,
    ) -> None:
        self.rank = rank
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def fit(
        self,
        row_features: Any,
        column_features: Any,
        rows: Any = None,
        columns: Any = None,
        values: Any = None,
        sample_weight: Any = None,
        *,
        matrix: Any = None,
    ) -> InductiveMatrixCompletion:
        """Fit the model to the observed entries.

        Parameters
        ----------
        row_features : array, sparse matrix, DataFrame or Arrow table of shape (n_rows, d1)
            Features of every row of the matrix.
        column_features : array, sparse matrix, DataFrame or Arrow table of shape (n_columns, d2)
            Features of every column of the matrix.
        rows : array-like of int of shape (n_entries,), optional
            Row index of each observed entry.
        columns : array-like of int of shape (n_entries,), optional
            Column index of each observed entry.
        values : array-like of shape (n_entries,), optional
            Value of each observed entry.
        sample_weight : array-like of shape (n_entries,), optional
            Weights of the entries, which act as relative precisions. Entries of weight 0 are ignored. With ``matrix``,
            in the order of its stored entries, or row by row of those that are not NaN.
        matrix : array or sparse matrix of shape (n_rows, n_columns), optional
            The observed entries, instead of ``rows``, ``columns`` and ``values``: those of an array that are not NaN, or
            the stored entries of a sparse matrix, explicit zeros included.

        Returns
        -------
        InductiveMatrixCompletion
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If an argument is invalid, or if an index is out of range.

        Warns
        -----
        ConvergenceWarning
            If ``fit_report_["status"]`` is not "converged".

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import InductiveMatrixCompletion
        >>> random = np.random.default_rng(0)
        >>> X, Z = random.normal(size=(50, 3)), random.normal(size=(40, 2))
        >>> full = X @ np.outer([1, 0, 2], [1, 1]) @ Z.T
        >>> i, j = random.integers(40, size=200), random.integers(40, size=200)
        >>> InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j]).matrix_.round(2) + 0.0
        array([[1., 1.],
               [0., 0.],
               [2., 2.]])
        """
        check_integer("rank", self.rank, 1)
        X, Z = self._check_features(row_features, column_features, reset=not self._is_continued)
        rows, columns, values = _check_entries(rows, columns, values, matrix, (X.shape[0], Z.shape[0]))
        pairs = self._make_pairs(X, Z, rows, columns)
        settings = make_settings(self, "bilinear", min(int(self.rank), X.shape[1], Z.shape[1]))
        settings.right = [f"{X.shape[1]}-{X.shape[1] + Z.shape[1] - 1}"]
        pairs.set_targets(values, [])
        weights = set_relative_weights(pairs, sample_weight, values[:, np.newaxis])
        self._model = self._train_model(pairs, settings)
        self._report_residual(values, self._predictor().predict(pairs, False, resolve_jobs(self.n_jobs)), weights)
        return self

    def _check_features(self, row_features: Any, column_features: Any, reset: bool) -> tuple[Any, Any]:
        """Validate both feature matrices. With ``reset``, store their sizes and names; otherwise compare them."""
        (X, row_names), (Z, column_names) = (
            _read_features(row_features, "row_features"),
            _read_features(column_features, "column_features"),
        )
        names = None if row_names is None or column_names is None else np.array(row_names + column_names, dtype=object)
        if reset:
            self.n_row_features_, self.n_column_features_ = X.shape[1], Z.shape[1]
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return X, Z
        if (X.shape[1], Z.shape[1]) != (self.n_row_features_, self.n_column_features_):
            raise ValueError(
                f"row_features and column_features must have {self.n_row_features_} and {self.n_column_features_} "
                f"features as in fit, got {X.shape[1]} and {Z.shape[1]}."
            )
        if names is not None and hasattr(self, "feature_names_in_"):
            wrong = np.flatnonzero(names != self.feature_names_in_)
            if len(wrong):
                raise ValueError(
                    f"The feature names must be those of fit, in the same order; got {names[wrong[0]]!r} instead of "
                    f"{self.feature_names_in_[wrong[0]]!r}."
                )
        return X, Z

    def _count_unknowns(self) -> int:
        dim, rank = self.n_row_features_ + self.n_column_features_, self._fitted_rank
        return int(1 + dim + rank * (dim - rank))

    def _saved_attributes(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {
            "n_row_features": self.n_row_features_,
            "n_column_features": self.n_column_features_,
            "feature_names": None if names is None else list(names),
        }

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        counts = int(attributes["n_row_features"]), int(attributes["n_column_features"])
        if sum(counts) != len(_core.Predictor.from_bytes(model, name).column_names()):
            raise ValueError("the model has a different number of features")
        self._model = model
        self.n_row_features_, self.n_column_features_ = counts
        if attributes.get("feature_names") is not None:
            self.feature_names_in_ = np.array(attributes["feature_names"], dtype=object)

    def _predictor(self) -> _core.Predictor:
        return _core.Predictor.from_bytes(self._model)

    @property
    def matrix_(self) -> Floats:
        """M in the units of the features, an array of shape (n_row_features_, n_column_features_)."""
        check_is_fitted(self)
        parameters, features = self._predictor().parameters(), _core.features(self._model)
        factors = parameters["factors"] / features["scales"][:, np.newaxis]
        left, right = factors[: self.n_row_features_], factors[self.n_row_features_ :]
        result: Floats = features["target_scale"] * (left * parameters["spectrum"]) @ right.T
        return result

    @property
    def intercept_(self) -> float:
        """Prediction for features that are all 0."""
        check_is_fitted(self)
        return float(_core.features(self._model)["intercept"])

    @property
    def row_coef_(self) -> Floats:
        """Coefficients of the row features, an array of shape (n_row_features_,)."""
        check_is_fitted(self)
        coefficients: Floats = _core.features(self._model)["coefficients"][: self.n_row_features_]
        return coefficients

    @property
    def column_coef_(self) -> Floats:
        """Coefficients of the column features, an array of shape (n_column_features_,)."""
        check_is_fitted(self)
        coefficients: Floats = _core.features(self._model)["coefficients"][self.n_row_features_ :]
        return coefficients

    @overload
    def predict(
        self,
        row_features: Any,
        column_features: Any,
        rows: Any = None,
        columns: Any = None,
        return_std: Literal[False] = False,
    ) -> Floats: ...

    @overload
    def predict(
        self,
        row_features: Any,
        column_features: Any,
        rows: Any = None,
        columns: Any = None,
        *,
        return_std: Literal[True],
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self, row_features: Any, column_features: Any, rows: Any = None, columns: Any = None, return_std: bool = False
    ) -> Union[Floats, tuple[Floats, Floats]]:
        """Predict entries of the matrix.

        Parameters
        ----------
        row_features : array, sparse matrix, DataFrame or Arrow table of shape (n_rows, d1)
            Features of every row of the matrix. The rows may differ from those in `fit`.
        column_features : array, sparse matrix, DataFrame or Arrow table of shape (n_columns, d2)
            Features of every column of the matrix.
        rows : array-like of int of shape (n_entries,), optional
            Row index of each entry to predict. By default, all entries are predicted.
        columns : array-like of int of shape (n_entries,), optional
            Column index of each entry to predict. Required with ``rows``.
        return_std : bool, default=False
            If True, return the standard deviations, too.

        Returns
        -------
        y_pred : ndarray of shape (n_entries,) or (n_rows, n_columns)
            Predicted entries; the whole matrix if ``rows`` and ``columns`` are not given.
        y_std : ndarray of the same shape
            Standard deviations of the entries, noise included. Only returned if ``return_std`` is True.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If an argument is invalid, or if an index is out of range.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import InductiveMatrixCompletion
        >>> random = np.random.default_rng(0)
        >>> X, Z = random.normal(size=(50, 3)), random.normal(size=(40, 2))
        >>> full = X @ np.outer([1, 0, 2], [1, 1]) @ Z.T
        >>> i, j = random.integers(40, size=200), random.integers(40, size=200)
        >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j])
        >>> model.predict(X, Z).shape, model.predict(X, Z, [45], [3]).shape
        ((50, 40), (1,))
        """
        X, Z, rows, columns, shape = self._check_request(row_features, column_features, rows, columns)
        pairs, threads = self._make_pairs(X, Z, rows, columns), resolve_jobs(self.n_jobs)
        if return_std:
            entries, deviations = self._predictor().predict(pairs, True, threads)
            return entries.reshape(shape), deviations.reshape(shape)
        return self._predictor().predict(pairs, False, threads).reshape(shape)

    def explain(
        self, row_features: Any, column_features: Any, rows: Any = None, columns: Any = None, top: Optional[int] = None
    ) -> pd.DataFrame:
        """Return the terms x_j M_jk z_k of each predicted entry, and the linear terms.

        Parameters
        ----------
        row_features : array or sparse matrix of shape (n_rows, d1)
            Features of every row of the matrix.
        column_features : array or sparse matrix of shape (n_columns, d2)
            Features of every column of the matrix.
        rows : array-like of int of shape (n_entries,), optional
            Row index of each entry. By default, all entries are explained, in row-major order.
        columns : array-like of int of shape (n_entries,), optional
            Column index of each entry. Required with ``rows``.
        top : int, optional
            Number of terms to list, by decreasing mean absolute value. The column '(other terms)' is the sum of the
            others. By default, all terms are listed.

        Returns
        -------
        pandas.DataFrame of shape (n_entries, n_terms)
            Terms, which add up to the predicted entries. 'x0', 'x1', ... are the row features, and 'z0', 'z1', ... the
            column features, unless they have names; other columns are as for `FactorizationRegressor.explain`.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import InductiveMatrixCompletion
        >>> random = np.random.default_rng(0)
        >>> X, Z = random.normal(size=(50, 3)), random.normal(size=(40, 2))
        >>> full = X @ np.outer([1, 0, 2], [1, 1]) @ Z.T
        >>> i, j = random.integers(40, size=200), random.integers(40, size=200)
        >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j])
        >>> terms = model.explain(X, Z, [45, 46], [3, 4])
        >>> bool(np.allclose(terms.sum(axis=1), model.predict(X, Z, [45, 46], [3, 4])))
        True
        """
        X, Z, rows, columns, _ = self._check_request(row_features, column_features, rows, columns)
        names = getattr(self, "feature_names_in_", None)

        def rename(number: str) -> str:
            position = int(number) - self.n_row_features_
            return str(names[int(number)]) if names is not None else f"z{position}" if position >= 0 else f"x{number}"

        pairs = self._make_pairs(X, Z, rows, columns)
        return explain_rows(self._predictor(), pairs, resolve_jobs(self.n_jobs), top=top, rename=rename)

    def _check_request(
        self, row_features: Any, column_features: Any, rows: Any, columns: Any
    ) -> tuple[Any, Any, npt.NDArray[np.intp], npt.NDArray[np.intp], tuple[int, ...]]:
        """Return the features, the indices of the requested entries, and the shape of the result."""
        check_is_fitted(self)
        X, Z = self._check_features(row_features, column_features, reset=False)
        if (rows is None) != (columns is None):
            raise ValueError("rows and columns must both be given or both be None.")
        if rows is None:
            rows, columns = np.divmod(np.arange(X.shape[0] * Z.shape[0]), Z.shape[0])
            return X, Z, rows, columns, (X.shape[0], Z.shape[0])
        rows, columns = _check_pairs(rows, columns, (X.shape[0], Z.shape[0]))
        return X, Z, rows, columns, rows.shape

    def score(
        self,
        row_features: Any,
        column_features: Any,
        rows: Any = None,
        columns: Any = None,
        values: Any = None,
        sample_weight: Any = None,
        *,
        matrix: Any = None,
    ) -> float:
        """Return the coefficient of determination R^2 of the predictions of observed entries.

        Parameters
        ----------
        row_features : array, sparse matrix, DataFrame or Arrow table of shape (n_rows, d1)
            Features of every row of the matrix.
        column_features : array, sparse matrix, DataFrame or Arrow table of shape (n_columns, d2)
            Features of every column of the matrix.
        rows, columns, values : array-like of shape (n_entries,), optional
            Observed entries, as in `fit`.
        sample_weight : array-like of shape (n_entries,), optional
            Weights of the entries.
        matrix : array or sparse matrix of shape (n_rows, n_columns), optional
            Observed entries, as in `fit`.

        Returns
        -------
        float
            1 - sum (y - f)^2 / sum (y - mean(y))^2 with the predictions f of the entries y.

        Examples
        --------
        >>> import numpy as np
        >>> from dyad import InductiveMatrixCompletion
        >>> random = np.random.default_rng(0)
        >>> X, Z = random.normal(size=(50, 3)), random.normal(size=(40, 2))
        >>> full = X @ np.outer([1, 0, 2], [1, 1]) @ Z.T
        >>> i, j = random.integers(40, size=200), random.integers(40, size=200)
        >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j])
        >>> round(model.score(X, Z, matrix=full), 4)
        1.0
        """
        check_is_fitted(self)
        X, Z = self._check_features(row_features, column_features, reset=False)
        rows, columns, values = _check_entries(rows, columns, values, matrix, (X.shape[0], Z.shape[0]))
        return float(r2_score(values, self.predict(X, Z, rows, columns), sample_weight=sample_weight))

    @staticmethod
    def _make_pairs(X: Any, Z: Any, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> _core.Rows:
        """Return the rows [x_i, z_j] of the entries."""
        if sp.issparse(X) or sp.issparse(Z):
            return _rows.from_sparse(sp.hstack([sp.csr_matrix(X)[rows], sp.csr_matrix(Z)[columns]], format="csr"))
        return _rows.from_array(np.hstack([X[rows], Z[columns]]))


def _read_features(features: Any, name: str) -> tuple[Any, Optional[list[str]]]:
    """Return features as an array or a CSR matrix, and the names of the columns of a table."""
    table = _tables.as_table(features)
    if isinstance(table, _tables.Table):
        return check_array(table.to_array(), dtype=np.float64, input_name=name), table.names
    if sp.issparse(features):
        _rows.check_sparse(features)
    return check_array(features, accept_sparse="csr", dtype=np.float64, input_name=name), None


def _check_entries(
    rows: Any, columns: Any, values: Any, matrix: Any, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    """Return the indices and values of the observed entries."""
    is_missing = [argument is None for argument in (rows, columns, values)]
    if matrix is None and any(is_missing) or matrix is not None and not all(is_missing):
        raise ValueError("Pass either rows, columns and values, or matrix.")
    if matrix is not None:
        if sp.issparse(matrix):
            _rows.check_sparse(matrix)
            entries = sp.coo_array(matrix)
            rows, columns, values = entries.row.astype(np.intp), entries.col.astype(np.intp), entries.data
        else:
            matrix = np.asarray(matrix, dtype=np.float64)
            rows, columns = np.nonzero(~np.isnan(np.atleast_2d(matrix)))
            values = np.atleast_2d(matrix)[rows, columns]
        if tuple(np.shape(matrix)) != shape:
            raise ValueError(f"matrix must have the shape {shape}, the numbers of rows of both features, got {matrix.shape}.")
        if len(values) == 0:
            raise ValueError("matrix must have observed entries, got none.")
    values = np.ascontiguousarray(check_array(values, ensure_2d=False, dtype=np.float64, input_name="values"))
    rows, columns = _check_pairs(rows, columns, shape)
    if values.shape != rows.shape:
        raise ValueError(f"values must have the shape ({len(rows)},), as rows and columns, got {values.shape}.")
    return rows, columns, values


def _check_pairs(
    rows: Any, columns: Any, shape: tuple[int, int]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    rows, columns = _check_indices(rows, shape[0], "rows"), _check_indices(columns, shape[1], "columns")
    if rows.shape != columns.shape:
        raise ValueError(f"rows and columns must have the same length, got {len(rows)} and {len(columns)}.")
    return rows, columns


def _check_indices(indices: Any, count: int, name: str) -> npt.NDArray[np.intp]:
    indices = np.asarray(indices)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"{name} must be a one-dimensional array of integers, got {indices.ndim} dimensions of {indices.dtype}."
        )
    if indices.size and (indices.min() < 0 or indices.max() >= count):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"{name} must be in [0, {count}), got {wrong}.")
    checked: npt.NDArray[np.intp] = indices.astype(np.intp)
    return checked
