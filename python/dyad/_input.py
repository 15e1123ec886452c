"""Validation of X and its conversion to rows of the extension."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from . import _core, _dask, _rows, _tables
from ._columns import Column, as_float_array
from ._encoding import ColumnEncoding, EncodedRows, resolve_categorical


@dataclasses.dataclass
class InputRows:
    """Rows of X.

    Attributes
    ----------
    rows : _core.Rows or PartitionedRows
        Rows for the extension.
    values : EncodedRows, ndarray, CSR matrix or PartitionedRows
        Values of the rows.
    integer_columns : list of (str, ndarray)
        Names and values of the numeric columns with an integer type.
    """

    rows: Union[_core.Rows, _dask.PartitionedRows]
    values: Union[EncodedRows, Any]
    integer_columns: list[tuple[str, npt.NDArray[Any]]]


class InputMixin:
    """Conversion of X for `FactorizationRegressor` and `FactorizationClassifier`."""

    categorical_features: Any
    date_encoding: Optional[str]
    max_bytes: float
    n_features_in_: int
    _models: list[bytes]
    _layout: str
    _encoding: Optional[ColumnEncoding]

    def _read_rows(self, X: Any, reset: bool) -> InputRows:
        """Validate X with scikit-learn and convert it. With ``reset``, store its layout, columns and feature names."""
        if not reset and self._is_valid_array(X):
            return InputRows(_rows.from_array(X), X, [])
        if reset and _tables.is_dask(X):
            sizes = _dask.partition_sizes(X)
            if sum(sizes) * len(X.columns) * 8 > self.max_bytes:
                return self._read_partitions(X, sizes)
        table = _tables.as_table(X)
        if isinstance(table, _tables.Table):
            return self._read_table(table, reset)
        return self._read_array(X, reset)

    def _read_table(self, table: _tables.Table, reset: bool) -> InputRows:
        validate_data(self, table.header, reset=reset, skip_check_array=True)
        if len(table) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if not table.names:
            raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required.")
        if not reset and self._layout != "table":
            return self._read_matrix(table.to_array())
        if reset:
            declared = resolve_categorical(self.categorical_features, table.names, has_names=True)
            self._set_encoding(table, declared)
        return self._encode(table, reset)

    def _read_partitions(self, X: Any, sizes: list[int]) -> InputRows:
        """Return the partitions of a DataFrame of dask, whose columns must be numbers."""
        header = X._meta_nonempty
        validate_data(self, header, reset=True, skip_check_array=True)
        table = _tables.as_table(header)
        if resolve_categorical(self.categorical_features, table.names, has_names=True) or any(
            column.categories is not None or column.is_date for column in table.columns
        ):
            raise ValueError(
                "X has categories or dates, and more bytes than max_bytes; raise max_bytes, or train by partition: "
                "for part in X.partitions: model.partial_fit(part.compute(), ...)."
            )
        self._layout, self._encoding = "matrix", None
        rows = _dask.PartitionedRows(X, sizes)
        return InputRows(rows, rows, [])

    def _set_encoding(self, table: _tables.Table, declared: frozenset[str]) -> None:
        self._layout = "table"
        self._encoding = ColumnEncoding.fit(table, declared, self.date_encoding)

    def _encode(self, table: _tables.Table, is_fit: bool) -> InputRows:
        assert self._encoding is not None
        encoded = self._encoding.encode(table, is_fit)
        integers = [
            (name, column.values)
            for name, column in zip(table.names, table.columns)
            if column.is_integer and name not in self._encoding.categorical
        ]
        return InputRows(encoded.to_rows(), encoded, integers)

    def _is_valid_array(self, X: Any) -> bool:
        """Return whether X is a valid array for prediction, without a call of scikit-learn.

        The validation of scikit-learn takes longer than the prediction of a few rows.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and self._layout != "table"
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(X).all())
        )

    def _read_array(self, X: Any, reset: bool) -> InputRows:
        if sp.issparse(X):
            _rows.check_sparse(X)
            X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
            if reset:
                names = [str(j) for j in range(X.shape[1])]
                if resolve_categorical(self.categorical_features, names, has_names=False):
                    raise ValueError("categorical_features must be 'from_dtype' for sparse matrices; pass a table instead.")
                self._layout, self._encoding = "sparse", None
            return InputRows(_rows.from_sparse(X), X, [])
        is_integer = isinstance(X, np.ndarray) and X.dtype.kind in "iu"
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
        if not reset and self._layout != "table":
            return self._read_matrix(X)
        names = [str(j) for j in range(X.shape[1])] if reset else self._column_names()
        table = _tables.Table(names, [Column(as_float_array(values), is_integer=is_integer) for values in X.T], len(X), None)
        if reset:
            declared = resolve_categorical(self.categorical_features, names, has_names=False)
            if not declared and not _rows.has_missing(X):
                self._layout, self._encoding = "matrix", None
                integers = [(column, values) for column, values in zip(names, X.T)] if is_integer else []
                return InputRows(_rows.from_array(X), X, integers)
            self._set_encoding(table, declared)
        return self._encode(table, reset)

    def _read_matrix(self, X: npt.NDArray[Any]) -> InputRows:
        """Convert an array for a model of arrays without missing values, or of sparse rows.

        A missing value is replaced by the center of its column, as in tables whose training rows have no missing values.
        """
        if self._layout == "matrix" and _rows.has_missing(X):
            X = np.where(np.isnan(X), _core.features(self._models[0])["centers"], X)
        return InputRows(_rows.from_array(X), X, [])

    def _column_names(self) -> list[str]:
        """Return the names of the columns of X."""
        if self._encoding is not None:
            return self._encoding.names
        return [str(j) for j in range(self.n_features_in_)]

    def _input_columns(self) -> npt.NDArray[np.intp]:
        """Return the index of the column of X for each column of the model."""
        if self._encoding is None:
            return np.arange(self.n_features_in_)
        counts = [len(self._encoding.model_columns(name)) for name in self._encoding.names]
        return np.repeat(np.arange(len(counts)), counts)
