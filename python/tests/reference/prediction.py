"""Predictions of the two forms of the model: M as a matrix, and M as signed factors."""

from __future__ import annotations

import dataclasses

import numpy as np

from .model_file import ModelFile


@dataclasses.dataclass
class Model:
    """y = b + w'x + x'Mx + sum_j squares_j x_j^2; bilinear (left_dim > 0): y = b + w'[x, z] + x'Mz."""

    intercept: float
    weights: np.ndarray
    M: np.ndarray
    squares: np.ndarray
    left_dim: int = 0

    @classmethod
    def of(cls, file: ModelFile, left_dim: int, prefix: str = "") -> Model:
        """Return the model of a file: M = U diag(spectrum) U', or U diag(spectrum) V' with U above V."""
        spectrum = file.tensors[prefix + "spectrum"].astype(float)
        weights = file.tensors[prefix + "weights"].astype(float)
        factors = file.tensors[prefix + "factors"].astype(float).reshape(len(weights), len(spectrum))
        left, right = (factors[:left_dim], factors[left_dim:]) if left_dim else (factors, factors)
        squares = file.tensors[prefix + "squares"].astype(float)
        return cls(
            intercept=float(file.number(prefix + "intercept")),
            weights=weights,
            M=left * spectrum @ right.T,
            squares=squares if squares.size else np.zeros(len(weights)),
            left_dim=left_dim,
        )

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return b + w'x + x'Mx + sum_j squares_j x_j^2 of each row, or b + w'[x, z] + x'Mz."""
        predictions = []
        for row in X:
            x, z = (row[: self.left_dim], row[self.left_dim :]) if self.left_dim else (row, row)
            predictions.append(self.intercept + self.weights @ row + x @ self.M @ z + self.squares @ row**2)
        return np.array(predictions)


@dataclasses.dataclass
class SignedFactors:
    """Parameters of filters and solvers: M = A diag(signs) A', or A_left diag(signs) A_right'.

    ``diagonal`` is "tied" (squares are part of M), "zero" (no squares) or "free" (each square has a coefficient of
    x_j^2 - square_centre).
    """

    intercept: float
    weights: np.ndarray
    squares: np.ndarray
    A: np.ndarray
    signs: np.ndarray
    diagonal: str = "tied"
    left_dim: int = 0
    square_centre: float = 0.0

    def copy(self) -> SignedFactors:
        return dataclasses.replace(
            self, weights=self.weights.copy(), squares=self.squares.copy(), A=self.A.copy(), signs=self.signs.copy()
        )

    def model(self) -> Model:
        """Return the same model with M as a matrix; the coefficient of x_j^2 is M_jj + squares_j."""
        left, right = (self.A[: self.left_dim], self.A[self.left_dim :]) if self.left_dim else (self.A, self.A)
        M = left * self.signs @ right.T
        squares = np.zeros(len(self.weights))
        intercept = self.intercept
        if self.diagonal != "tied":
            squares = -np.diag(M).copy()
        if self.diagonal == "free":
            squares += self.squares
            intercept -= self.square_centre * self.squares.sum()
        return Model(intercept, self.weights, M, squares, self.left_dim)

    def predict(self, x: np.ndarray) -> float:
        """Return the prediction of one row."""
        return float(self.model().predict(x[None, :])[0])

    def gradient(self, x: np.ndarray) -> SignedFactors:
        """Return df/dtheta at the row x, one number for each parameter.

        df/dA_jc = 2 signs_c x_j (p_c - [diagonal not tied] A_jc x_j) with p = A'x; bilinear: signs_c x_j q_c, where q is
        the projection of the other side. df/dsquares_j = x_j^2 - square_centre.
        """
        derivatives = np.zeros_like(self.A)
        if self.left_dim:
            left, right = slice(0, self.left_dim), slice(self.left_dim, None)
            derivatives[left] = np.outer(x[left], self.signs * (x[right] @ self.A[right]))
            derivatives[right] = np.outer(x[right], self.signs * (x[left] @ self.A[left]))
        else:
            others = x @ self.A - (0 if self.diagonal == "tied" else self.A * x[:, None])
            derivatives[:] = 2 * self.signs * x[:, None] * others
        squares = x**2 - self.square_centre if self.diagonal == "free" else np.zeros_like(x)
        return dataclasses.replace(self, intercept=1.0, weights=x.copy(), squares=squares, A=derivatives)

    def vector(self) -> np.ndarray:
        """Return all parameters in one vector: intercept, weights, squares, A by rows."""
        return np.concatenate([[self.intercept], self.weights, self.squares, self.A.ravel()])

    def with_vector(self, values: np.ndarray) -> SignedFactors:
        """Return a copy with the parameters of a vector in the order of `vector`."""
        dim = len(self.weights)
        return dataclasses.replace(
            self,
            intercept=float(values[0]),
            weights=values[1 : 1 + dim].copy(),
            squares=values[1 + dim : 1 + 2 * dim].copy(),
            A=values[1 + 2 * dim :].reshape(self.A.shape).copy(),
            signs=self.signs.copy(),
        )


def logistic(f: float) -> float:
    """1 / (1 + exp(-f))."""
    return float(np.exp(-np.logaddexp(0, -f)))
