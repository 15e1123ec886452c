"""Rank-one measurements y = x'Mz, and parts that the algorithms for them have in common."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Iterations end at this relative residual. The error of M is then about 1e-7 or less, which is below the error that counts as success.
RESIDUAL_TOLERANCE = 1e-8


@dataclasses.dataclass
class MatrixEstimate:
    """Estimate of a matrix.

    Attributes
    ----------
    matrix : Array
        Estimate of M.
    iterations : int
        Number of iterations.
    """

    matrix: Array
    iterations: int


class RankOneMeasurements:
    """Measurements y_i = x_i'M z_i, with an optional linear term y_i = x_i'M z_i + c_i'u of unknown coefficients u.

    The linear term is eliminated: all residuals and targets are projected onto the orthogonal complement of its columns, which
    is the same as a least-squares estimate of u in every step.

    Parameters
    ----------
    X, Z : Array
        Rows x_i and z_i. Z is X for symmetric sensing.
    y : Array
        Targets.
    linear_columns : Array, optional
        Rows c_i.
    """

    def __init__(self, X: Array, Z: Array, y: Array, linear_columns: Array | None = None) -> None:
        self.X = X
        self.Z = Z
        self.is_symmetric = Z is X
        self.linear_basis: Array | None = None
        if linear_columns is not None:
            self.linear_basis = np.linalg.qr(linear_columns)[0]
        self.y = self.project(y)

    def project(self, values: Array) -> Array:
        """Return the component of a vector, or of each column of a matrix, that is orthogonal to the linear term."""
        if self.linear_basis is None:
            return values
        projection: Array = values - self.linear_basis @ (self.linear_basis.T @ values)
        return projection

    def residuals(self, L: Array, R: Array) -> Array:
        """Return y - x'LR'z of all rows, projected."""
        return self.y - self.project(np.einsum("ij,ij->i", self.X @ L, self.Z @ R))

    def relative_residual(self, residuals: Array) -> float:
        """Return the norm of the residuals relative to the norm of the targets."""
        return float(np.linalg.norm(residuals) / np.linalg.norm(self.y))

    def adjoint(self, values: Array) -> Array:
        """Return sum_i values_i x_i z_i' / n, and half of it for symmetric sensing.

        For Gaussian rows, the expectation for the values x_i'D z_i is D. For symmetric sensing it is D + tr(D) I / 2.
        """
        factor = 0.5 if self.is_symmetric else 1.0
        product: Array = factor / len(values) * (self.X.T @ (values[:, None] * self.Z))
        return product

    def spectral_initialization(self, rank: int) -> tuple[Array, Array]:
        """Return L and R with LR' = best approximation of rank k of the adjoint applied to y.

        The term tr(M) I / 2 of symmetric sensing is subtracted; mean(y) estimates tr(M).
        """
        matrix = self.adjoint(self.y)
        if self.is_symmetric:
            matrix = matrix - self.y.mean() / 2 * np.eye(len(matrix))
        U, values, Vt = np.linalg.svd(matrix)
        scale = np.sqrt(values[:rank])
        return U[:, :rank] * scale, Vt[:rank].T * scale

    def matrix(self, L: Array, R: Array) -> Array:
        """Return LR', or its symmetric part for symmetric sensing."""
        product: Array = L @ R.T
        return (product + product.T) / 2 if self.is_symmetric else product


def matrix_error(estimate: Array, matrix: Array) -> float:
    """Return the spectral norm of the difference."""
    return float(np.linalg.norm(estimate - matrix, 2))
