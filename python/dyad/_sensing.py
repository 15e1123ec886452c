"""Low-rank matrices from rank-one measurements."""

from __future__ import annotations

import os
import warnings
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _core, _files, _rows
from ._checks import require_whole, seed_of, threads_of

Floats = npt.NDArray[np.float64]


def _settings(estimator: Any, kind: str, rank: int) -> _core.Settings:
    settings = _core.Settings()
    settings.kind = kind
    settings.rank = rank
    settings.seed = seed_of(estimator.random_state)
    settings.threads = threads_of(estimator.n_threads)
    return settings


class _OneModel(BaseEstimator):
    """An estimator with one model, ``_model``."""

    _model: bytes

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimator to a file for `dyad.load` and the ``dyad`` command.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced as a whole, or not at all. Links and permissions are kept.
        """
        check_is_fitted(self)
        _files.write(path, _files.to_bytes(self, [self._model], self.get_params(deep=False), self._attributes()))

    def _attributes(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _from_saved(cls, saved: _files.Saved) -> Any:
        model, parameters, attributes = saved.only_part()
        estimator = cls(**parameters)
        estimator.summary_ = {}
        estimator._restore(model, attributes, saved.name)
        return estimator

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        raise NotImplementedError

    def _learn(self, rows: _core.Rows, settings: _core.Settings) -> bytes:
        model, self.summary_ = _core.fit(rows, settings)
        for warning in self.summary_["warnings"]:
            warnings.warn(warning, ConvergenceWarning, stacklevel=3)
        return model


class _Measurements(_OneModel):
    """Symmetric measurements y = a'Ma without noise or with it; a are the rows of X."""

    _kind: str
    _rank: int

    def fit(self, X: Any, y: Any) -> Any:
        """Recover from the vectors of the measurements, as rows of X, and their results.

        Parameters
        ----------
        X : array-like of shape (n_measurements, n_features)
            Taken as they are: neither centred nor scaled.
        y : array-like of shape (n_measurements,)
            Results.

        Returns
        -------
        estimator
            Itself.
        """
        _rows.require_supported(X)
        X = _rows.as_frame(X)
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=True)
        rows = _rows.from_array(X)
        rows.set_targets(np.require(y, np.float64, ["C", "A"]), [])
        self._set_model(self._learn(rows, _settings(self, self._kind, self._rank)), "the model")
        unknowns = self._rank * X.shape[1] - self._rank * (self._rank - 1) // 2
        residual = np.std(y - self._predicted(X))
        if residual > 1e-6 * np.std(y) and len(y) < 3 * unknowns:
            warnings.warn(
                f"The {len(y)} measurements of {unknowns} unknowns are not met (a residual of {residual:.3g}), so the "
                "answer may be far off: measure more, or try another rank or random_state.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def predict(self, X: Any) -> Floats:
        """Return what the measurements X would give."""
        check_is_fitted(self)
        _rows.require_supported(X)
        X = validate_data(self, _rows.as_frame(X), dtype=np.float64, reset=False)
        return self._predicted(X)

    def _predicted(self, X: Any) -> Floats:
        result: Floats = ((X @ self.eigenvectors_) ** 2) @ self.eigenvalues_
        return result

    def _set_model(self, model: bytes, name: str) -> None:
        predictor = _core.Predictor.from_bytes(model, name)
        self._model = model
        self.eigenvalues_: Floats = np.array(predictor.inspect(0)["spectrum"])
        self.eigenvectors_: Floats = predictor.parameters()["factors"]

    def _attributes(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names": None if names is None else list(names)}

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        self._set_model(model, name)
        self.n_features_in_ = self.eigenvectors_.shape[0]
        if attributes["feature_names"] is not None:
            self.feature_names_in_ = np.array(attributes["feature_names"], dtype=object)


class MatrixSensing(_Measurements):
    """Recover a symmetric matrix M of low rank, with eigenvalues of any sign, from measurements a'Ma.

    Without noise, recovery is exact from about twice as many random measurements as M has unknowns
    (rank * n_features - rank * (rank - 1) / 2), and often from 1.5 times as many: least squares are solved from the
    moments of the measurements, and the answer is known to be the right one, because fewer unknowns than measurements
    meet all of them. With noise of standard deviation s the error falls like s / sqrt(n_measurements).

    Parameters
    ----------
    rank : int, default=1
        The rank of M.
    random_state : int, optional
        The seed.
    n_threads : int, optional
        All cores unless given.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (rank,)
        Strongest first.
    eigenvectors_ : ndarray of shape (n_features, rank)
        Orthonormal columns.
    matrix_ : ndarray of shape (n_features, n_features)
        M.
    summary_ : dict
        What was done.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import MatrixSensing
    >>> random = np.random.default_rng(0)
    >>> M = np.diag([2.0, -1.0] + [0.0] * 18)
    >>> A = random.normal(size=(100, 20))
    >>> found = MatrixSensing(rank=2).fit(A, np.einsum("ij,jk,ik->i", A, M, A)).matrix_
    >>> bool(np.abs(found - M).max() < 1e-6)
    True
    """

    _kind = "sensing"

    def __init__(
        self, rank: int = 1, *, random_state: Optional[int] = None, n_threads: Optional[int] = None
    ) -> None:
        self.rank = rank
        self.random_state = random_state
        self.n_threads = n_threads

    @property
    def _rank(self) -> int:  # type: ignore[override]
        require_whole("rank", self.rank, 1)
        return int(self.rank)

    @property
    def matrix_(self) -> Floats:
        check_is_fitted(self)
        result: Floats = (self.eigenvectors_ * self.eigenvalues_) @ self.eigenvectors_.T
        return result


class PhaseRetrieval(_Measurements):
    """Recover a signal, up to its sign, from the squares of its projections: y = (a'x)**2.

    Without noise, recovery is exact from about twice as many random measurements as the signal has entries. Reflections
    between what the measurements and what a signal allow find the start, and Gauss-Newton ends it.

    Parameters
    ----------
    random_state : int, optional
        The seed.
    n_threads : int, optional
        All cores unless given.

    Attributes
    ----------
    signal_ : ndarray of shape (n_features,)
        The signal; its negative is just as good.
    summary_ : dict
        What was done.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import PhaseRetrieval
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=30)
    >>> A = random.normal(size=(120, 30))
    >>> found = PhaseRetrieval().fit(A, (A @ x) ** 2).signal_
    >>> bool(np.abs(PhaseRetrieval.align(found, x) - x).max() < 1e-6)
    True
    """

    _kind = "phase"
    _rank = 1

    def __init__(self, *, random_state: Optional[int] = None, n_threads: Optional[int] = None) -> None:
        self.random_state = random_state
        self.n_threads = n_threads

    @property
    def signal_(self) -> Floats:
        check_is_fitted(self)
        result: Floats = np.sqrt(np.maximum(self.eigenvalues_[0], 0)) * self.eigenvectors_[:, 0]
        return result

    @staticmethod
    def align(signal: Any, reference: Any) -> Floats:
        """Return the signal or its negative, whichever is nearer to the reference; both are real."""
        for name, values in (("signal", signal), ("reference", reference)):
            if np.iscomplexobj(values):
                raise ValueError(f"{name} must be real, got complex numbers; PhaseRetrieval recovers real signals.")
        signal, reference = np.asarray(signal, dtype=np.float64), np.asarray(reference, dtype=np.float64)
        if signal.shape != reference.shape:
            raise ValueError("signal and reference must have the same shape.")
        aligned: Floats = -signal if np.vdot(signal, reference) < 0 else signal
        return aligned


class InductiveMatrixCompletion(_OneModel):
    """Complete a matrix from features of its rows and columns: entry (i, j) is b + w'x_i + v'z_j + x_i'M z_j.

    Because M, of low rank, is learned in place of one vector for each row and column, rows and columns without any
    observed entry are predicted, too. Without noise, M is found exactly from hardly more entries than it has unknowns,
    rank * (d1 + d2 - rank), where the features are random enough.

    Parameters
    ----------
    rank : int, default=4
        The rank of M.
    random_state : int, optional
        The seed.
    n_threads : int, optional
        All cores unless given.

    Attributes
    ----------
    summary_ : dict
        What was done.

    Examples
    --------
    >>> import numpy as np
    >>> from dyad import InductiveMatrixCompletion
    >>> random = np.random.default_rng(0)
    >>> X, Z = random.normal(size=(50, 6)), random.normal(size=(40, 5))
    >>> full = X @ np.outer(random.normal(size=6), random.normal(size=5)) @ Z.T
    >>> i, j = random.integers(40, size=300), random.integers(40, size=300)
    >>> model = InductiveMatrixCompletion(rank=1).fit(X, Z, i, j, full[i, j])
    >>> bool(np.abs(model.predict(X, Z) - full)[40:].max() < 1e-3)  # rows that were never observed
    True
    """

    def __init__(
        self, rank: int = 4, *, random_state: Optional[int] = None, n_threads: Optional[int] = None
    ) -> None:
        self.rank = rank
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, row_features: Any, column_features: Any, rows: Any, columns: Any, values: Any) -> Any:
        """Learn from observed entries.

        Parameters
        ----------
        row_features : array or sparse matrix of shape (n_rows, d1)
            Of every row of the matrix.
        column_features : array or sparse matrix of shape (n_columns, d2)
            Of every column.
        rows, columns : array-like of int of shape (n_entries,)
            Where each observed entry stands.
        values : array-like of shape (n_entries,)
            The entries.

        Returns
        -------
        InductiveMatrixCompletion
            Itself.
        """
        require_whole("rank", self.rank, 1)
        X, Z = _features(row_features, "row_features"), _features(column_features, "column_features")
        values = np.ascontiguousarray(check_array(values, ensure_2d=False, dtype=np.float64))
        together = self._pairs(X, Z, rows, columns)
        if values.shape != (together[1],):
            raise ValueError("rows, columns and values must have one entry each for every observed entry.")
        settings = _settings(self, "bilinear", min(int(self.rank), X.shape[1], Z.shape[1]))
        settings.right = [f"{X.shape[1]}-{X.shape[1] + Z.shape[1] - 1}"]
        together[0].set_targets(values, [])
        self._model = self._learn(together[0], settings)
        self.n_row_features_, self.n_column_features_ = X.shape[1], Z.shape[1]
        return self

    def _attributes(self) -> dict[str, Any]:
        return {"n_row_features": self.n_row_features_, "n_column_features": self.n_column_features_}

    def _restore(self, model: bytes, attributes: dict[str, Any], name: str) -> None:
        counts = int(attributes["n_row_features"]), int(attributes["n_column_features"])
        if sum(counts) != len(_core.Predictor.from_bytes(model, name).column_names()):
            raise ValueError("the model has another number of features")
        self._model = model
        self.n_row_features_, self.n_column_features_ = counts

    def predict(self, row_features: Any, column_features: Any, rows: Any = None, columns: Any = None) -> Floats:
        """Return entries: those at (rows, columns), or the whole matrix unless given."""
        check_is_fitted(self)
        X, Z = _features(row_features, "row_features"), _features(column_features, "column_features")
        if (X.shape[1], Z.shape[1]) != (self.n_row_features_, self.n_column_features_):
            raise ValueError("row_features and column_features must have as many features as in fit.")
        if (rows is None) != (columns is None):
            raise ValueError("rows and columns go together.")
        whole = rows is None
        if whole:
            rows, columns = np.divmod(np.arange(X.shape[0] * Z.shape[0]), Z.shape[0])
        threads = threads_of(self.n_threads)
        found: Floats = _core.Predictor.from_bytes(self._model).predict(
            self._pairs(X, Z, rows, columns)[0], False, threads
        )
        return found.reshape(X.shape[0], Z.shape[0]) if whole else found

    @staticmethod
    def _pairs(X: Any, Z: Any, rows: Any, columns: Any) -> tuple[_core.Rows, int]:
        rows, columns = _places(rows, X.shape[0], "rows"), _places(columns, Z.shape[0], "columns")
        if rows.shape != columns.shape:
            raise ValueError("rows and columns must have the same length.")
        if sp.issparse(X) or sp.issparse(Z):
            together = sp.hstack([sp.csr_matrix(X)[rows], sp.csr_matrix(Z)[columns]], format="csr")
            return _rows.from_sparse(together), len(rows)
        return _rows.from_array(np.hstack([X[rows], Z[columns]])), len(rows)


def _features(features: Any, name: str) -> Any:
    if sp.issparse(features):
        _rows.require_valid_sparse(features)
    return check_array(features, accept_sparse="csr", dtype=np.float64, input_name=name)


def _places(places: Any, count: int, name: str) -> npt.NDArray[np.intp]:
    places = np.asarray(places)
    if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
        raise ValueError(f"{name} must be whole numbers in one dimension.")
    if places.size and (places.min() < 0 or places.max() >= count):
        raise ValueError(f"{name} must lie in [0, {count}).")
    whole: npt.NDArray[np.intp] = places.astype(np.intp)
    return whole
