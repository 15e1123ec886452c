"""One Levenberg-Marquardt step on the parameters (b, w, squares, A) (docs/method.md, Gauss-Newton)."""

from __future__ import annotations

import dataclasses

import numpy as np

from .kalman import is_censored
from .prediction import SignedFactors, logistic

_MIN_SCALE_RATIO = 1e-6  # smallest damping scale, relative to the largest
_MIN_CURVATURE = 1e-6  # smallest curvature of the log-loss


@dataclasses.dataclass
class Problem:
    """Rows and the objective: sum of losses + ridge_weights (|w|^2 + |squares|^2) / 2 + ridge_factors |A|^2 / 2.

    The loss of a row is half its squared residual (0 if its target is censored), or the log-loss of a class (-1, +1).
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    is_class: bool = False
    low: float = -np.inf
    high: float = np.inf
    linear: bool = True
    intercept: bool = True
    ridge_weights: float = 0.0
    ridge_factors: float = 0.0

    def losses(self, theta: SignedFactors) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the sum of losses, and r = -d loss/df and h = d^2 loss/df^2 of each row, all times its weight."""
        total, r, h = 0.0, np.zeros(len(self.y)), np.zeros(len(self.y))
        for i, (x, y, weight) in enumerate(zip(self.X, self.y, self.weights)):
            f = theta.predict(x)
            if self.is_class:
                p = logistic(f)
                total += weight * np.logaddexp(0, -f if y > 0 else f)
                r[i], h[i] = weight * ((y > 0) - p), weight * max(p * (1 - p), _MIN_CURVATURE)
            elif not is_censored(y, f, self.low, self.high):
                total += weight * (y - f) ** 2 / 2
                r[i], h[i] = weight * (y - f), weight
        return float(total), r, h

    def jacobian(self, theta: SignedFactors) -> np.ndarray:
        """Return df/dtheta: one row per data row, one column per parameter in the order of SignedFactors.vector()."""
        J = np.array([theta.gradient(x).vector() for x in self.X])
        return J * self.learned(theta)

    def learned(self, theta: SignedFactors) -> np.ndarray:
        """Return 1 for each estimated parameter, else 0."""
        return dataclasses.replace(
            theta,
            intercept=float(self.intercept),
            weights=np.full_like(theta.weights, self.linear),
            squares=np.full_like(theta.squares, theta.diagonal == "free"),
            A=np.ones_like(theta.A),
        ).vector()

    def ridge(self, theta: SignedFactors) -> np.ndarray:
        """Return the ridge of each parameter."""
        return dataclasses.replace(
            theta,
            intercept=0.0,
            weights=np.full_like(theta.weights, self.ridge_weights * self.linear),
            squares=np.full_like(theta.squares, self.ridge_weights * (theta.diagonal == "free")),
            A=np.full_like(theta.A, self.ridge_factors),
        ).vector()

    def objective(self, theta: SignedFactors) -> float:
        """Return the sum of the losses and the ridge penalty, divided by the total weight."""
        return float((self.losses(theta)[0] + self.ridge(theta) @ theta.vector() ** 2 / 2) / self.weights.sum())

    def gradient(self, theta: SignedFactors) -> np.ndarray:
        """Return the gradient of the objective, (ridge theta - J'r) / total weight."""
        _, r, _ = self.losses(theta)
        return (self.ridge(theta) * theta.vector() - self.jacobian(theta).T @ r) / self.weights.sum()

    def damping_scales(self, theta: SignedFactors, h: np.ndarray) -> np.ndarray:
        """Return the diagonal of D, the expected curvature of each parameter for independent features.

        D = H [1, E x_j^2, E x_j^4, E x_j^2 K_c], where H = sum h and K_c = sum h (df/dA_jc / x_j)^2 / H with df/dA_jc / x_j =
        2 signs_c p_c, or the projection of the other side.
        """
        total = max(h.sum(), 1e-6 * self.weights.sum())
        moments = np.concatenate([[1], *((self.weights @ self.X**p / self.weights.sum()) for p in (2, 4))])
        dim, left = self.X.shape[1], theta.left_dim
        if theta.diagonal != "free":
            moments = moments[: 1 + dim]
        moments = np.maximum(moments, _MIN_SCALE_RATIO * moments.max())
        if left:
            projections = [self.X[:, left:] @ theta.A[left:], self.X[:, :left] @ theta.A[:left]]
            side = [0] * left + [1] * (dim - left)
        else:
            projections, side = [2 * self.X @ theta.A], [0] * dim
        K = [np.maximum(h @ values**2 / total, _MIN_SCALE_RATIO) for values in projections]
        return dataclasses.replace(
            theta,
            intercept=total,
            weights=total * moments[1 : 1 + dim],
            squares=total * moments[1 + dim :] if theta.diagonal == "free" else np.ones(dim),
            A=total * moments[1 : 1 + dim, None] * np.array([K[s] for s in side]),
        ).vector()

    def step(self, theta: SignedFactors, damping: float) -> SignedFactors:
        """Solve (J'HJ + ridge + damping D) t = J'r - ridge theta; return theta + t if it decreases the objective."""
        _, r, h = self.losses(theta)
        J, ridge = self.jacobian(theta), self.ridge(theta)
        left_side = J.T * h @ J + np.diag(ridge + damping * self.damping_scales(theta, h))
        right_side = J.T @ r - ridge * theta.vector() * self.learned(theta)
        t = np.linalg.solve(left_side, right_side) * self.learned(theta)
        moved = theta.with_vector(theta.vector() + t)
        return moved if self.objective(moved) < self.objective(theta) else theta
