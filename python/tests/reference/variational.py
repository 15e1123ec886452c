"""One sweep of coordinate ascent on the variational bound (docs/method.md, sweeps over sparse rows)."""

from __future__ import annotations

import dataclasses

import numpy as np

from .kalman import is_censored
from .prediction import SignedFactors

_INTERCEPT_PRECISION = 1e-12  # prior precision of the intercept, relative to the total weight


@dataclasses.dataclass
class Posterior:
    """Independent Gaussian posterior of all parameters of a symmetric model whose diagonal is zero or free.

    ``variances`` has the shape of ``means``; a parameter of variance 0 is not estimated. ``precisions`` are those of the
    priors: one per factor, one for the weights and one for the squares.
    """

    means: SignedFactors
    variances: SignedFactors
    noise: float
    precisions: np.ndarray

    def moments(self, x: np.ndarray) -> tuple[float, float]:
        """Return E[f] and Var[f] of a row.

        f = b + sum_j (w_j x_j + squares_j x_j^2) + 2 sum_c s_c sum_{i<j} a_ic a_jc x_i x_j. Two pairs of a factor covary
        if they share a feature: Cov(a_i a_j, a_i a_l) = v_i m_j m_l.
        """
        mean, variance = self.means, self.variances
        expected = mean.predict(x)
        spread = variance.intercept + variance.weights @ x**2 + variance.squares @ x**4
        present = np.flatnonzero(x)
        pairs = [(i, j) for i in present for j in present if i < j]
        for m, v in zip((mean.A * x[:, None]).T, (variance.A * x[:, None] ** 2).T):
            for pair in pairs:
                for other in pairs:
                    spread += 4 * _covariance_of_products(m, v, pair, other)
        return expected, float(spread)


def _covariance_of_products(m: np.ndarray, v: np.ndarray, pair: tuple[int, int], other: tuple[int, int]) -> float:
    """Cov(a_i a_j, a_k a_l) of independent a with means m and variances v."""
    shared = set(pair) & set(other)
    if len(shared) == 2:
        i, j = pair
        return float((m[i] ** 2 + v[i]) * (m[j] ** 2 + v[j]) - m[i] ** 2 * m[j] ** 2)
    if len(shared) == 1:
        (i,) = shared
        (j,) = set(pair) - shared
        (k,) = set(other) - shared
        return float(v[i] * m[j] * m[k])
    return 0.0


@dataclasses.dataclass
class Rows:
    """Dense rows with targets (classes: -1 and +1), weights above 0 and the bounds of the targets."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    is_class: bool = False
    low: float = -np.inf
    high: float = np.inf


def estimate_precisions(posterior: Posterior, rows: Rows) -> np.ndarray:
    """Return tau = (number of occurring features) / (sum of their E[theta^2]) of each factor, weights and squares."""
    occurs = (rows.X != 0).any(axis=0)
    means = np.column_stack([posterior.means.A, posterior.means.weights, posterior.means.squares])[occurs]
    variances = np.column_stack([posterior.variances.A, posterior.variances.weights, posterior.variances.squares])[occurs]
    squares = (means**2 + variances).sum(axis=0)
    return np.where(squares > 0, occurs.sum() / np.where(squares > 0, squares, 1), posterior.precisions)


def color_features(X: np.ndarray) -> list[list[int]]:
    """Return groups of features that do not occur in the same row, by greedy coloring in the order of the features."""
    groups: list[list[int]] = []
    for j in range(X.shape[1]):
        if not X[:, j].any():
            continue
        for group in groups:
            if not any(((X[:, j] != 0) & (X[:, i] != 0)).any() for i in group):
                group.append(j)
                break
        else:
            groups.append([j])
    return groups


def sweep(posterior: Posterior, rows: Rows) -> Posterior:
    """Update the noise or the bounds of classes, the intercept, every parameter of every feature, and the priors.

    Regression: noise precision alpha = sum w / sum w E[(y - f)^2]; a censored target is replaced by its prediction.
    Classification: log logistic(f) >= log logistic(xi) + (f - xi)/2 - lambda(xi) (f^2 - xi^2) with xi^2 = E[f^2] and
    lambda(xi) = tanh(xi / 2) / (4 xi), which is least squares with targets +-1/2 / (2 lambda) and precisions 2 lambda.
    """
    now = dataclasses.replace(posterior, means=posterior.means.copy(), variances=posterior.variances.copy())
    moments = [now.moments(x) for x in rows.X]
    if rows.is_class:
        alpha = 1.0
        xi = [np.sqrt(mean**2 + variance) for mean, variance in moments]
        twice_lambda = np.array([2 * (0.125 if x < 1e-6 else np.tanh(x / 2) / (4 * x)) for x in xi])
        targets = np.where(rows.y > 0, 0.5, -0.5) / twice_lambda
        rho = rows.weights * twice_lambda
    else:
        targets = np.array(
            [mean if is_censored(y, mean, rows.low, rows.high) else y for y, (mean, _) in zip(rows.y, moments)]
        )
        squares = [(y - mean) ** 2 + variance for y, (mean, variance) in zip(targets, moments)]
        alpha = float(rows.weights.sum() / (rows.weights @ np.array(squares)))
        rho = rows.weights
    if now.variances.intercept > 0:
        _update_intercept(now, rows, targets, rho, alpha)
    for group in color_features(rows.X):
        for j in group:
            _update_feature(now, rows, targets, rho, alpha, j)
    now.noise = 1 / alpha
    now.precisions = estimate_precisions(now, rows)
    return now


def _update_intercept(posterior: Posterior, rows: Rows, targets: np.ndarray, rho: np.ndarray, alpha: float) -> None:
    """precision = tau + alpha sum rho, mean = alpha sum rho (y - E[f without b]) / precision."""
    precision = _INTERCEPT_PRECISION * rows.weights.sum() + alpha * rho.sum()
    without = np.array([posterior.means.predict(x) - posterior.means.intercept for x in rows.X])
    posterior.means.intercept = float(alpha * rho @ (targets - without) / precision)
    posterior.variances.intercept = float(1 / precision)


def _update_feature(
    posterior: Posterior, rows: Rows, targets: np.ndarray, rho: np.ndarray, alpha: float, j: int
) -> None:
    """Update the factors of feature j one after the other, then its weight and its square.

    Given all others, f = f_rest + theta g. The posterior of theta has the precision tau + alpha sum rho E[g^2] and the mean
    alpha sum rho E[g (y - f_rest)] / precision.
    """
    rows_of_feature = np.flatnonzero(rows.X[:, j])
    rank = posterior.means.A.shape[1]
    blocks: list[tuple[str, int]] = [("A", c) for c in range(rank)]
    if (posterior.variances.weights > 0).any():
        blocks.append(("weights", rank))
    if posterior.means.diagonal == "free":
        blocks.append(("squares", rank + 1))
    for name, column in blocks:
        at = (j, column) if name == "A" else j
        means, variances = getattr(posterior.means, name), getattr(posterior.variances, name)
        precision, right = float(posterior.precisions[column]), 0.0
        for i in rows_of_feature:
            x = rows.X[i]
            g, g_squared, covariance = _gradient_moments(posterior, x, j, name, column)
            rest = posterior.means.predict(x) - g * means[at]
            precision += alpha * rho[i] * g_squared
            right += alpha * rho[i] * (g * (targets[i] - rest) - covariance)
        means[at] = right / precision
        variances[at] = 1 / precision


def _gradient_moments(posterior: Posterior, x: np.ndarray, j: int, name: str, c: int) -> tuple[float, float, float]:
    """Return E[g], E[g^2] and Cov(g, f_rest) of a row.

    A factor has g = 2 s x_j sum_{i != j} a_i x_i. It covaries with the pairs of other features in f_rest, which share a
    feature with g: Cov = 4 x_j sum_i v_i x_i^2 sum_{l != i} m_l x_l over i and l other than j.
    """
    if name == "weights":
        return x[j], x[j] ** 2, 0.0
    if name == "squares":
        return x[j] ** 2, x[j] ** 4, 0.0
    others = [i for i in np.flatnonzero(x) if i != j]
    m, v = posterior.means.A[:, c] * x, posterior.variances.A[:, c] * x**2
    g = 2 * posterior.means.signs[c] * x[j] * sum(m[i] for i in others)
    covariance = 4 * x[j] * sum(v[i] * m[k] for i in others for k in others if k != i)
    return g, g**2 + 4 * x[j] ** 2 * sum(v[i] for i in others), covariance
