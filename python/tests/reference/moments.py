"""The moment solver: sums over a batch and the one-scan update (docs/method.md; Lin and Ye 2016)."""

from __future__ import annotations

import dataclasses

import numpy as np

from .prediction import Model

_MIN_DETERMINANT = 0.05  # below it, the feature is treated as binary: its square is a linear term


@dataclasses.dataclass
class FeatureMoments:
    """Power sums of the features: weight, sum of squared weights, and the sums of x, x^2, x^3 and x^4 of each feature."""

    weight: float
    squared_weights: float
    sums: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, weights: np.ndarray) -> FeatureMoments:
        sums = np.stack([weights @ X**power for power in (1, 2, 3, 4)], axis=1)
        return cls(float(weights.sum()), float((weights**2).sum()), sums)

    def __add__(self, other: FeatureMoments) -> FeatureMoments:
        return FeatureMoments(
            self.weight + other.weight, self.squared_weights + other.squared_weights, self.sums + other.sums
        )

    def central(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return mean, variance, kappa = E[z^3] and phi = E[z^4] of z = (x - mean) / deviation.

        A constant feature has kappa = 0 and phi = 1, as a binary feature.
        """
        m, second, third, fourth = (self.sums / self.weight).T
        v = np.maximum(second - m**2, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            kappa = (third - 3 * m * second + 2 * m**3) / v**1.5
            phi = (fourth - 4 * m * third + 6 * m**2 * second - 3 * m**4) / v**2
        return m, v, np.where(v > 0, kappa, 0), np.where(v > 0, phi, 1)

    def is_gaussian(self) -> bool:
        """Return whether kappa and phi are 0 and 3 up to sampling errors, whose variances are 6/n and 24/n."""
        n = self.weight**2 / self.squared_weights
        _, _, kappa, phi = self.central()
        return bool(np.mean(kappa**2) < 4 * 6 / n + 0.0025 and np.mean((phi - 3) ** 2) < 4 * 24 / n + 0.01)


@dataclasses.dataclass
class MomentSums:
    """p0 = sum r, p1 = sum r x, p2 = sum r x*x, G = sum r x (x'Z); bilinear: G = sum r [x (z'Z_right), z (x'Z_left)]."""

    weight: float
    p0: float
    residual_squares: float
    p1: np.ndarray
    p2: np.ndarray
    G: np.ndarray


def sum_moments(model: Model, Z: np.ndarray, X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> MomentSums:
    """Return the sums over rows with the residuals r = y - f(x), each times the weight of its row."""
    sums = MomentSums(0.0, 0.0, 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1]), np.zeros(Z.shape))
    left = model.left_dim
    for x, residual, weight in zip(X, y - model.predict(X), weights):
        r = weight * residual
        sums.weight += weight
        sums.p0 += r
        sums.residual_squares += r * residual
        sums.p1 += r * x
        sums.p2 += r * x * x
        if left:
            sums.G[:left] += r * np.outer(x[:left], x[left:] @ Z[left:])
            sums.G[left:] += r * np.outer(x[left:], x[:left] @ Z[:left])
        else:
            sums.G += r * np.outer(x, x @ Z)
    return sums


@dataclasses.dataclass
class Shape:
    """Estimated parameters, and assumptions about the features."""

    diagonal: str = "tied"
    linear: bool = True
    intercept: bool = True
    positive: bool = False
    centered: bool = True  # standardize by mean and standard deviation; False: by the root mean square
    gaussian: bool = False  # kappa = 0 and phi = 3; False: estimated


def update(
    model: Model, U: np.ndarray, X: np.ndarray, y: np.ndarray, weights: np.ndarray, features: FeatureMoments, shape: Shape
) -> Model:
    """Return the one-scan update of the model, whose factors span U, with a batch of rows.

    The rows are standardized, z = (x - m) / s, and the model with them:
    M_z = s M s, w_z = s (w + 2 M m), b_z = b + w'm + m'Mm. For constant features, 1/s is replaced by 0.
    """
    mean, variance, _, _ = features.central()
    spread = variance + mean**2
    if shape.centered:
        spread = np.where(variance > 1e-12 * spread, variance, 0)
    else:
        mean = np.zeros_like(mean)
    s = np.sqrt(spread)
    inverse = np.divide(1, s, out=np.zeros_like(s), where=s > 0)
    standard = _shifted(model, mean, s)
    U = _orthonormal(s[:, None] * U, model.left_dim)
    next_model = _update_standard(standard, U, (X - mean) * inverse, y, weights, features, shape)
    return _shifted(next_model, -mean * inverse, inverse)


def _shifted(model: Model, m: np.ndarray, s: np.ndarray) -> Model:
    """Return the model of z, where x = m + s z."""
    left = model.left_dim
    if left:
        M = s[:left, None] * model.M * s[left:]
        at_m = np.concatenate([model.M @ m[left:], model.M.T @ m[:left]])
    else:
        M = s[:, None] * model.M * s
        at_m = 2 * (model.M @ m + model.squares * m)
    intercept = float(model.intercept + model.weights @ m + at_m @ m / 2)
    return Model(intercept, s * (model.weights + at_m), M, s**2 * model.squares, left)


def _orthonormal(factors: np.ndarray, left: int) -> np.ndarray:
    """Return an orthonormal basis of the columns, for each side separately."""
    if not left:
        return np.linalg.qr(factors)[0]
    return np.vstack([np.linalg.qr(factors[:left])[0], np.linalg.qr(factors[left:])[0]])


def _update_standard(
    model: Model, U: np.ndarray, Z: np.ndarray, y: np.ndarray, weights: np.ndarray, features: FeatureMoments, shape: Shape
) -> Model:
    """Return the one-scan update for features with mean 0 and variance 1.

    symmetric: M+ = best rank-k part of U Y' + Y U' - U (U'Y) U' with Y = (M + dM) U
    bilinear:  M+ = best rank-k part of U Y_right' + Y_left V' - U (U'Y_left) V',
               Y_left = (M + dM) V, Y_right = (M + dM)'U
    w+ = w + dw, b+ = b + p0/n - (tr M+ - tr M), where the coefficients of the squares are added to the trace
    """
    sums = sum_moments(model, U, Z, y, weights)
    n, k, left = sums.weight, U.shape[1], model.left_dim
    if left:
        V, U = U[left:], U[:left]
        Y_left = model.M @ V + sums.G[:left] / n
        Y_right = model.M.T @ U + sums.G[left:] / n
        P, values, Q = np.linalg.svd(U @ Y_right.T + Y_left @ V.T - U @ (U.T @ Y_left) @ V.T)
        M = P[:, :k] * values[:k] @ Q[:k]
        dw = sums.p1 / n
        diagonal_change = np.zeros(0)
    else:
        dw, diagonal_change = _linear_and_diagonal_change(sums, features, shape)
        dMU = (sums.G - sums.p2[:, None] * U) / (2 * n)
        if shape.diagonal == "tied":
            dMU += diagonal_change[:, None] * U
        Y = model.M @ U + dMU
        values, vectors = np.linalg.eigh(U @ Y.T + Y @ U.T - U @ (U.T @ Y) @ U.T)
        strongest = np.argsort(-(values if shape.positive else np.abs(values)))[:k]
        M = vectors[:, strongest] * values[strongest] @ vectors[:, strongest].T
    return _finish(model, M, dw, diagonal_change, sums, shape)


def _linear_and_diagonal_change(
    sums: MomentSums, features: FeatureMoments, shape: Shape
) -> tuple[np.ndarray, np.ndarray]:
    """Return (dw_j, dM_jj) = [1 kappa_j; kappa_j phi_j - 1]^-1 (p1_j, p2_j - p0) / n.

    If det_j = phi_j - 1 - kappa_j^2 is near 0, or for a zero diagonal, dM_jj = 0 and dw_j = p1_j / n.
    """
    _, _, kappa, phi = features.central()
    if shape.gaussian:
        kappa, phi = np.zeros_like(kappa), np.full_like(phi, 3)
    dw, dM = sums.p1 / sums.weight, np.zeros_like(sums.p1)
    for j in range(len(dw)):
        if shape.diagonal == "zero" or phi[j] - 1 - kappa[j] ** 2 <= _MIN_DETERMINANT:
            continue
        equations = np.array([[1, kappa[j]], [kappa[j], phi[j] - 1]])
        dw[j], dM[j] = np.linalg.solve(equations, np.array([sums.p1[j], sums.p2[j] - sums.p0]) / sums.weight)
    return dw, dM


def _finish(
    model: Model, M: np.ndarray, dw: np.ndarray, diagonal_change: np.ndarray, sums: MomentSums, shape: Shape
) -> Model:
    """Return the next model. The coefficient of x_j^2 is M_jj + squares_j: 0, or the previous one plus dM_jj."""
    squares = np.zeros_like(model.squares)
    if shape.diagonal != "tied":
        squares = -np.diag(M)
    if shape.diagonal == "free":
        squares = squares + np.diag(model.M) + model.squares + diagonal_change
    weights = model.weights + dw if shape.linear else model.weights
    intercept = model.intercept
    if shape.intercept:
        intercept += sums.p0 / sums.weight
        if not model.left_dim:
            intercept -= np.trace(M) + squares.sum() - np.trace(model.M) - model.squares.sum()
    return Model(float(intercept), weights, M, squares, model.left_dim)
