"""Inductive matrix completion as an estimator."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import check_array, check_is_fitted

from . import _core, _rows
from ._checks import check_integer, resolve_threads
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
    n_threads : int, optional
        Number of threads. By default, all cores are used.

    Attributes
    ----------
    n_row_features_ : int
        Number of row features in ``fit``, d1.
    n_column_features_ : int
        Number of column features in ``fit``, d2.
    fit_report_ : dict
        Diagnosis of the fit. ``status`` is "converged", "too_few_rows", "not_identifiable", "rank_too_small",
        "inconsistent_sign", "local_minimum" or "outliers"; None if it is not available. ``message`` has the same in
        words, with what to change. ``noise`` is the estimated standard deviation of the noise, 0 for exact fits.
        ``outliers`` is the number of excluded entries. Empty for loaded estimators.
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
    """

    def __init__(
        self, rank: int = 4, *, random_state: Optional[int] = None, n_threads: Optional[int] = None
    ) -> None:
        self.rank = rank
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self,
        row_features: Any,
        column_features: Any,
        rows: Any,
        columns: Any,
        values: Any,
        sample_weight: Any = None,
    ) -> InductiveMatrixCompletion:
        """Fit the model to the observed entries.

        Parameters
        ----------
        row_features : array or sparse matrix of shape (n_rows, d1)
            Features of every row of the matrix.
        column_features : array or sparse matrix of shape (n_columns, d2)
            Features of every column of the matrix.
        rows : array-like of int of shape (n_entries,)
            Row index of each observed entry.
        columns : array-like of int of shape (n_entries,)
            Column index of each observed entry.
        values : array-like of shape (n_entries,)
            Value of each observed entry.
        sample_weight : array-like of shape (n_entries,), optional
            Weights of the entries. Entries of weight 0 are ignored.

        Returns
        -------
        InductiveMatrixCompletion
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If an argument is invalid, or if an index is out of range.
        """
        check_integer("rank", self.rank, 1)
        X, Z = _check_features(row_features, "row_features"), _check_features(column_features, "column_features")
        values = np.ascontiguousarray(check_array(values, ensure_2d=False, dtype=np.float64))
        pairs, count = self._make_pairs(X, Z, rows, columns)
        if values.shape != (count,):
            raise ValueError(f"values must have the shape ({count},), as rows and columns, got {values.shape}.")
        settings = make_settings(self, "bilinear", min(int(self.rank), X.shape[1], Z.shape[1]))
        settings.right = [f"{X.shape[1]}-{X.shape[1] + Z.shape[1] - 1}"]
        pairs.set_targets(values, [])
        set_relative_weights(pairs, sample_weight, values[:, np.newaxis])
        self._model = self._train_model(pairs, settings)
        self.n_row_features_, self.n_column_features_ = X.shape[1], Z.shape[1]
        return self

    def _saved_attributes(self) -> dict[str, Any]:
        return {"n_row_features": self.n_row_features_, "n_column_features": self.n_column_features_}

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        counts = int(attributes["n_row_features"]), int(attributes["n_column_features"])
        if sum(counts) != len(_core.Predictor.from_bytes(model, name).column_names()):
            raise ValueError("the model has a different number of features")
        self._model = model
        self.n_row_features_, self.n_column_features_ = counts

    def predict(self, row_features: Any, column_features: Any, rows: Any = None, columns: Any = None) -> Floats:
        """Predict entries of the matrix.

        Parameters
        ----------
        row_features : array or sparse matrix of shape (n_rows, d1)
            Features of every row of the matrix. The rows may differ from those in `fit`.
        column_features : array or sparse matrix of shape (n_columns, d2)
            Features of every column of the matrix.
        rows : array-like of int of shape (n_entries,), optional
            Row index of each entry to predict. By default, all entries are predicted.
        columns : array-like of int of shape (n_entries,), optional
            Column index of each entry to predict. Required with ``rows``.

        Returns
        -------
        ndarray of shape (n_entries,) or (n_rows, n_columns)
            Predicted entries; the whole matrix if ``rows`` and ``columns`` are not given.

        Raises
        ------
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If an argument is invalid, or if an index is out of range.
        """
        X, Z = self._check_entries(row_features, column_features, rows, columns)
        is_full_matrix = rows is None
        if is_full_matrix:
            rows, columns = np.divmod(np.arange(X.shape[0] * Z.shape[0]), Z.shape[0])
        threads = resolve_threads(self.n_threads)
        pairs, _ = self._make_pairs(X, Z, rows, columns)
        entries = _core.Predictor.from_bytes(self._model).predict(pairs, False, threads)
        return entries.reshape(X.shape[0], Z.shape[0]) if is_full_matrix else entries

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
            column features; other columns are as for `FactorizationRegressor.explain`.
        """
        X, Z = self._check_entries(row_features, column_features, rows, columns)
        if rows is None:
            rows, columns = np.divmod(np.arange(X.shape[0] * Z.shape[0]), Z.shape[0])
        pairs, _ = self._make_pairs(X, Z, rows, columns)

        def rename(number: str) -> str:
            position = int(number) - self.n_row_features_
            return f"z{position}" if position >= 0 else f"x{number}"

        predictor = _core.Predictor.from_bytes(self._model)
        return explain_rows(predictor, pairs, resolve_threads(self.n_threads), top=top, rename=rename)

    def _check_entries(self, row_features: Any, column_features: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
        """Return the validated features."""
        check_is_fitted(self)
        X, Z = _check_features(row_features, "row_features"), _check_features(column_features, "column_features")
        if (X.shape[1], Z.shape[1]) != (self.n_row_features_, self.n_column_features_):
            raise ValueError(
                f"row_features and column_features must have {self.n_row_features_} and {self.n_column_features_} "
                f"features as in fit, got {X.shape[1]} and {Z.shape[1]}."
            )
        if (rows is None) != (columns is None):
            raise ValueError("rows and columns must both be given or both be None.")
        return X, Z

    @staticmethod
    def _make_pairs(X: Any, Z: Any, rows: Any, columns: Any) -> tuple[_core.Rows, int]:
        """Return the rows [x_i, z_j] of the entries, and their number."""
        rows, columns = _check_indices(rows, X.shape[0], "rows"), _check_indices(columns, Z.shape[0], "columns")
        if rows.shape != columns.shape:
            raise ValueError(f"rows and columns must have the same length, got {len(rows)} and {len(columns)}.")
        if sp.issparse(X) or sp.issparse(Z):
            pairs = sp.hstack([sp.csr_matrix(X)[rows], sp.csr_matrix(Z)[columns]], format="csr")
            return _rows.from_sparse(pairs), len(rows)
        return _rows.from_array(np.hstack([X[rows], Z[columns]])), len(rows)


def _check_features(features: Any, name: str) -> Any:
    if sp.issparse(features):
        _rows.check_sparse(features)
    return check_array(features, accept_sparse="csr", dtype=np.float64, input_name=name)


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
