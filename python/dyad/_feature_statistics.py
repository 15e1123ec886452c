"""Counts and moments of the features of a low-rank model over the training rows."""

from __future__ import annotations

import dataclasses
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._encoding import EncodedRows

Floats = npt.NDArray[np.float64]

# Largest number of rows from which the moments of a numeric column are computed. The variance of a Gaussian column then has
# a relative standard error of sqrt(2 / 16,384) = 1.1%.
_MAX_MOMENT_ROWS = 16_384


@dataclasses.dataclass
class FeatureStatistics:
    """Sums over the training rows, by feature.

    Attributes
    ----------
    rows : float
        Sum of the weights of the rows.
    counts : ndarray of shape (dim,)
        Number of rows in which a category occurs, or a number is present (sparse rows: not zero).
    powers : ndarray of shape (dim, 4)
        Weighted sums of z, z^2, z^3 and z^4, where z is the scaled feature, and 0 if the number is missing.
    """

    rows: float
    counts: npt.NDArray[np.int64]
    powers: Floats

    def __add__(self, other: FeatureStatistics) -> FeatureStatistics:
        """Return the sums over the rows of both; the second may have more features."""
        missing = len(other.counts) - len(self.counts)
        return FeatureStatistics(
            self.rows + other.rows,
            np.pad(self.counts, (0, missing)) + other.counts,
            np.pad(self.powers, ((0, missing), (0, 0))) + other.powers,
        )

    def moments(self) -> Floats:
        """Means of z, z^2, z^3 and z^4, an array of shape (dim, 4)."""
        return self.powers / self.rows


def compute(
    features: dict[str, Any], values: Union[EncodedRows, Any], weights: Optional[Floats]
) -> FeatureStatistics:
    """Compute the statistics of training rows.

    Parameters
    ----------
    features : dict
        Features of the model, the result of `_core.features`.
    values : EncodedRows, ndarray or CSR matrix
        Rows.
    weights : ndarray of shape (n_samples,), optional
        Weights of the rows.
    """
    size = values.count if isinstance(values, EncodedRows) else values.shape[0]
    row_weights = np.ones(size) if weights is None else weights
    dim = len(features["names"])
    result = FeatureStatistics(float(row_weights.sum()), np.zeros(dim, np.int64), np.zeros((dim, 4)))
    if isinstance(values, EncodedRows):
        _add_columns(result, features, values, row_weights)
    elif isinstance(values, np.ndarray):
        result.counts[:] = np.count_nonzero(row_weights)
        for j in range(dim):
            result.powers[j] = _numeric_powers(features, j, values[:, j], row_weights)
    else:
        _add_sparse(result, values, row_weights)
    return result


def _add_columns(result: FeatureStatistics, features: dict[str, Any], rows: EncodedRows, weights: Floats) -> None:
    names, columns = features["names"], features["columns"]
    for index, (_, name, column) in enumerate(rows.columns):
        members = np.flatnonzero(columns == index)
        if column.categories is None:
            is_missing = np.isnan(column.values)
            for j in members:
                if names[j] == name:
                    result.counts[j] = np.count_nonzero(~is_missing & (weights > 0))
                    result.powers[j] = _numeric_powers(features, j, column.values, weights)
                else:
                    result.counts[j] = np.count_nonzero(is_missing & (weights > 0))
                    result.powers[j] = weights[is_missing].sum()
            continue
        size = len(column.categories) + 1  # the last code is that of missing values
        codes = np.where(column.values < 0, size - 1, column.values)
        counts = np.bincount(codes[weights > 0], minlength=size)
        sums = np.bincount(codes, weights, minlength=size)
        code_of = {f"{name}={category}": code for code, category in enumerate(column.categories)}
        code_of[f"{name} is missing"] = size - 1
        for j in members:
            code = code_of.get(names[j])
            if code is not None:
                result.counts[j] = counts[code]
                result.powers[j] = sums[code]


def _numeric_powers(features: dict[str, Any], j: Any, values: npt.NDArray[Any], weights: Floats) -> Floats:
    """Return the sums of the powers of a numeric feature, from a part of the rows if there are many."""
    step = -(-len(values) // _MAX_MOMENT_ROWS)
    used, used_weights = np.asarray(values[::step], np.float64), weights[::step]
    z = (np.clip(used, features["lows"][j], features["highs"][j]) - features["centers"][j]) / features["scales"][j]
    z = np.nan_to_num(z)
    squares, weighted = z * z, used_weights * z
    powers = np.array([weighted.sum(), weighted @ z, weighted @ squares, (weighted * z) @ squares])
    total = used_weights.sum()
    return powers * (weights.sum() / total) if total > 0 else powers


def _add_sparse(result: FeatureStatistics, rows: Any, weights: Floats) -> None:
    dim = len(result.counts)
    counts = np.diff(rows.indptr)
    entry_weights = np.repeat(weights, counts)
    is_present = (rows.data != 0) & (entry_weights > 0)
    result.counts[:] = np.bincount(rows.indices[is_present], minlength=dim)[:dim]
    power = entry_weights
    for column in range(4):
        power = power * rows.data
        result.powers[:, column] = np.bincount(rows.indices, power, minlength=dim)[:dim]
