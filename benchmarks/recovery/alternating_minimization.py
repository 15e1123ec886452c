"""Alternating minimization.

P. Jain, P. Netrapalli, S. Sanghavi: Low-rank matrix completion using alternating minimization. STOC 2013.
K. Zhong, P. Jain, I. S. Dhillon: Efficient matrix sensing using rank-1 Gaussian measurements. ALT 2015.

The analyses use new rows in every iteration. Here, every iteration uses all rows, as in the experiments of the papers. The papers
have the form UV' and independent x and z. Symmetric sensing alternates between U and V in the symmetric part of UV': after each
least-squares estimate of U, V is set to the leading eigenvectors of the symmetric part. Alternating least squares for both factors
without this step converges sublinearly, because an error E of V is compensated by U up to terms of order E^2.
"""

from __future__ import annotations

import itertools

import numpy as np

from measurements import RESIDUAL_TOLERANCE, Array, MatrixEstimate, RankOneMeasurements

# Iterations of both factors. Runs well above the phase transition converge in fewer than half of them.
MAX_ITERATIONS = 200


def fit_factor(data: RankOneMeasurements, left: Array, right_products: Array, null_directions: Array | None = None) -> Array:
    """Return the least-squares estimate of U in y = x'U h, for rows x of `left` and h of `right_products`.

    Parameters
    ----------
    data : RankOneMeasurements
        Targets and linear term.
    left, right_products : Array
        Rows x and h.
    null_directions : Array, optional
        Orthogonal columns of U on which the predictions do not depend. The estimate is orthogonal to them.
    """
    n, d = left.shape
    k = right_products.shape[1]
    columns = data.project((left[:, :, None] * right_products[:, None, :]).reshape(n, d * k))
    gram = columns.T @ columns
    if null_directions is not None:
        scale = float(np.trace(gram)) / len(gram)
        gram += scale * (null_directions @ null_directions.T)
    coefficients = np.asarray(np.linalg.solve(gram, columns.T @ data.y), dtype=np.float64)
    return coefficients.reshape(d, k)


def antisymmetric_directions(V: Array) -> Array:
    """Return the matrices VA, as columns, of a basis of antisymmetric A. The symmetric part of VAV' is 0."""
    d, k = V.shape
    pairs = list(itertools.combinations(range(k), 2))
    directions = np.zeros((len(pairs), d, k))
    for direction, (first, second) in zip(directions, pairs):
        direction[:, second] = V[:, first]
        direction[:, first] = -V[:, second]
    return directions.reshape(len(pairs), d * k).T


def update_factors(data: RankOneMeasurements, U: Array, V: Array) -> tuple[Array, Array]:
    """Return U and V after one least-squares estimate of each."""
    V = np.linalg.qr(V)[0]
    U = np.linalg.qr(fit_factor(data, data.X, data.Z @ V))[0]
    return U, fit_factor(data, data.Z, data.X @ U)


def update_symmetric_factors(data: RankOneMeasurements, U: Array, V: Array) -> tuple[Array, Array]:
    """Return the factors of the best approximation of rank k of the symmetric part of UV', after an estimate of U."""
    V = np.linalg.qr(V)[0]
    U = fit_factor(data, data.X, data.X @ V, antisymmetric_directions(V))
    values, vectors = np.linalg.eigh(data.matrix(U, V))
    leading = np.argsort(np.abs(values))[-V.shape[1] :]
    return vectors[:, leading] * values[leading], vectors[:, leading]


def recover_matrix(data: RankOneMeasurements, rank: int) -> MatrixEstimate:
    """Estimate M of the given rank by alternating least squares from the spectral initialization."""
    update = update_symmetric_factors if data.is_symmetric else update_factors
    U, V = data.spectral_initialization(rank)
    for iteration in range(MAX_ITERATIONS):
        if data.relative_residual(data.residuals(U, V)) < RESIDUAL_TOLERANCE:
            return MatrixEstimate(data.matrix(U, V), iteration)
        try:
            U, V = update(data, U, V)
        except np.linalg.LinAlgError:  # the least-squares problem is singular
            return MatrixEstimate(data.matrix(U, V), iteration)
    return MatrixEstimate(data.matrix(U, V), MAX_ITERATIONS)
