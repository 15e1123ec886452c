"""Variance that the columns of a model explain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ._feature_statistics import FeatureStatistics

Floats = npt.NDArray[np.float64]


def low_rank_variances(
    parameters: dict[str, Any], features: dict[str, Any], statistics: FeatureStatistics
) -> Floats:
    """Return the variance of a low-rank model that each of its columns explains.

    The model is decomposed into functions of one and of two columns with mean 0 (functional ANOVA), under independent
    columns with the marginal distributions of the training rows. A column explains the variance of its own function and
    half of the variance of its functions of pairs. Sparse rows: each feature is a column.

    Let phi_c = sum_j U_j z_j over the features j of column c, with the covariance C_c. The function of the pair (c, d) is
    2 (phi_c - E phi_c)' L (phi_d - E phi_d) with L = diag(spectrum), and has the variance 4 trace(L C_c L C_d).
    """
    columns = np.asarray(features["columns"])
    if (columns < 0).all():
        columns = np.arange(len(columns))
    count = int(columns.max()) + 1
    moments = statistics.moments()
    factors, spectrum = parameters["factors"], parameters["spectrum"]
    squares = features["squares"]
    mean_rows = factors * moments[:, :1]
    means = np.zeros((count, len(spectrum)))
    np.add.at(means, columns, mean_rows)
    others = means.sum(axis=0) - means[columns]
    linear = parameters["weights"] + 2 * ((factors * spectrum) * others).sum(axis=1)

    # Variance of the functions of one column. The features of a column exclude each other: their products are 0.
    value_means = linear * moments[:, 0] + squares * moments[:, 1]
    value_squares = linear**2 * moments[:, 1] + 2 * linear * squares * moments[:, 2] + squares**2 * moments[:, 3]
    own = np.bincount(columns, value_squares, count) - np.bincount(columns, value_means, count) ** 2

    # Covariances of phi, and trace(L C_c L (C - C_c)) = sum of (L C L)_kl C_c,kl - trace(L C_c L C_c).
    second = (factors * moments[:, 1:2]).T @ factors - means.T @ means
    scaled = spectrum[:, None] * second * spectrum
    with_all = np.bincount(columns, ((factors @ scaled) * factors).sum(axis=1) * moments[:, 1], count) - (
        (means @ scaled) * means
    ).sum(axis=1)
    pairs = with_all - _squared_norms(columns, count, factors, moments, means, spectrum)
    variances: Floats = np.maximum(own, 0) + 2 * np.maximum(pairs, 0)
    return variances


def _squared_norms(
    columns: npt.NDArray[Any], count: int, factors: Floats, moments: Floats, means: Floats, spectrum: Floats
) -> Floats:
    """Return trace(L C_c L C_c) for each column c."""
    result = np.zeros(count)
    order = np.argsort(columns, kind="stable")
    starts = np.searchsorted(columns[order], np.arange(count + 1))
    sizes = np.diff(starts)
    single = order[starts[:-1][sizes == 1]]  # C_c = U_j' U_j times the variance of z_j
    variances = moments[single, 1] - moments[single, 0] ** 2
    result[columns[single]] = ((factors[single] ** 2) @ spectrum) ** 2 * variances**2
    for column in np.flatnonzero(sizes > 1):
        members = order[starts[column] : starts[column + 1]]
        weighted = factors[members] * moments[members, 1:2]
        product = spectrum[:, None] * (weighted.T @ factors[members] - np.outer(means[column], means[column]))
        result[column] = np.sum(product * product.T)
    return result


def anova_variances(effects: list[dict[str, Any]], names: list[str]) -> Floats:
    """Return the variance of an ANOVA model that each column explains: of its function, and half of its pairs."""
    result = np.zeros(len(names))
    position = {name: index for index, name in enumerate(names)}
    for effect in effects:
        axes = effect["axes"]
        for axis in axes:
            result[position[axis[0]]] += effect["spread"] ** 2 / len(axes)
    return result
