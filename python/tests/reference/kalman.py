"""Step of the Kalman filter with a variance per parameter and a fixed prior (docs/method.md)."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
import scipy.optimize

from .prediction import SignedFactors, logistic

MAX_SQUARED_RATIO = 25  # squared residuals are clipped at five standard deviations
MIN_NOISE = 1e-30


class NoiseEstimate(Protocol):
    """Running estimate of the noise variance s2."""

    value: float

    def observe(self, squared: float, explained: float) -> None:
        """Add a row with r^2 and v, where v is the variance of the prediction due to the parameters."""

    def restarted(self, value: float) -> NoiseEstimate:
        """Return an estimate without rows."""


@dataclasses.dataclass
class NoiseTracker:
    """Estimate of the noise variance s2: a long average, and a short average that replaces it after a decrease."""

    value: float
    recent: float
    unknowns: float  # number q of parameters that affect a row
    rows: float  # number of rows in the long average
    since_fall: float  # number of rows since the short average replaced the long one

    def observe(self, squared: float, explained: float) -> None:
        """Update the averages with r^2 - v, where v is the variance of the prediction due to the parameters.

        s2 += (r^2 - v - s2) / (min(rows, 5 q) + q), where q is `unknowns`.
        """
        excess = min(squared, MAX_SQUARED_RATIO * (self.value + explained)) - explained
        self.rows += 1
        rate = 1 / (min(self.rows, 5 * self.unknowns) + self.unknowns)
        self.value = max(self.value + (excess - self.value) * rate, self.value * (1 - 2 * rate))
        self.recent += (excess - self.recent) * min(1.0, 4 / self.unknowns)
        self.since_fall += 1
        if self.recent < self.value / 2 and 4 * self.since_fall > self.unknowns:
            self.value = self.recent = max(self.recent, self.value / 4)
            self.rows = self.since_fall = 0
        self.value = max(self.value, MIN_NOISE)

    def restarted(self, value: float) -> NoiseTracker:
        """Return an estimate without rows."""
        return NoiseTracker(value, value, self.unknowns, 0, 0)


@dataclasses.dataclass
class Prior:
    """Prior variances for features of scale 1."""

    intercept: float
    weights: float
    squares: float
    factors: float

    def variances(self, scales: np.ndarray, rank: int) -> np.ndarray:
        """Return the variances in the order of SignedFactors.vector().

        Those of weights and factors are divided by scale^2, those of squares by scale^4. A feature of scale 0 has not
        occurred; its variances are 0.
        """
        per_square = np.divide(1, scales**2, out=np.zeros_like(scales), where=scales > 0)
        factors = np.repeat(self.factors * per_square, rank)
        return np.concatenate([[self.intercept], self.weights * per_square, self.squares * per_square**2, factors])


@dataclasses.dataclass
class Filter:
    """Means, variances (0: the parameter is not estimated) and noise of one Kalman filter."""

    means: SignedFactors
    variances: np.ndarray
    prior: Prior
    scales: np.ndarray
    noise: NoiseEstimate
    rows: float
    innovation_ratio: float
    recent_squares: float
    last_seen: np.ndarray
    is_class: bool = False
    low: float = -np.inf
    high: float = np.inf
    half_life: float = 0.0
    amplitude: bool = False  # phase retrieval: update with the secant, see _gradient
    epsilon: float = float(np.finfo(float).eps)

    def parameters(self) -> SignedFactors:
        """Return the means of the parameters of f."""
        return self.means

    def model_parameters(self) -> SignedFactors:
        """Return the parameters of the model file."""
        return self.parameters()

    def prior_variances(self) -> np.ndarray:
        """Return the prior variances in the order of SignedFactors.vector()."""
        return self.prior.variances(self.scales, self.means.A.shape[1])

    def _gradient(self, x: np.ndarray, target: float | None) -> np.ndarray:
        """Return df/dtheta. Phase retrieval uses the secant (sqrt(y) + |p|) sign(p) instead of the derivative 2p."""
        gradient = self.parameters().gradient(x)
        if self.amplitude and target is not None:
            p = (x @ self.means.A).item()
            gradient.A = x[:, None] * np.copysign(np.sqrt(max(0.0, target)) + abs(p), p)
        return gradient.vector()

    def _explained(self, x: np.ndarray, g: np.ndarray) -> float:
        """Return v = sum P g^2."""
        return float(self.variances @ g**2)

    def _update(self, g: np.ndarray, gain: float, reduction: float) -> None:
        """theta += P g gain, P -= (P g)^2 reduction."""
        means, self.variances = updated(self.means.vector(), self.variances, g, gain, reduction, self.epsilon)
        self.means = self.means.with_vector(means)

    def predict(self, x: np.ndarray) -> tuple[float, float]:
        """Return the prediction f and its variance v without the noise."""
        return self.parameters().predict(x), self._explained(x, self._gradient(x, None))

    def step(self, x: np.ndarray, y: float, weight: float, present: np.ndarray) -> float:
        """Update the posterior with one row; return f before. ``present``: features with an entry in the row.

        regression: S = s2 / weight + v, theta += P g (y - f) / S, P -= (P g)^2 / S
        classification: see `class_update`
        """
        self.rows += 1
        if self.half_life > 0:
            self._forget(present)
        g = self._gradient(x, y)
        prediction = self.parameters().predict(x)
        v = self._explained(x, g)
        if not weight > 0 or (not self.is_class and is_censored(y, prediction, self.low, self.high)):
            return prediction
        noise = self.noise.value
        if self.is_class:
            gain, reduction = class_update(prediction, v, y > 0, weight)
        else:
            S = noise / weight + v
            gain, reduction = (y - prediction) / S, 1 / S
            self._observe_noise(x, (y - prediction) ** 2, v)
        self._update(g, gain, reduction)
        if not self.is_class:
            self._check_divergence((y - prediction) ** 2, noise + v)
        self._update_prior_if_due()
        return prediction

    def _observe_noise(self, x: np.ndarray, squared: float, explained: float) -> None:
        self.noise.observe(squared, explained)

    def _update_prior_if_due(self) -> None:
        """A fixed prior has no updates."""

    def _forget(self, present: np.ndarray) -> None:
        """P *= 2^(rows since the last occurrence of the feature / half_life), at most the prior variance."""
        age = np.where(present, self.rows - self.last_seen, 0)
        age = np.concatenate([[1], age, age, np.repeat(age, self.means.A.shape[1])])
        grown = np.minimum(self.variances * np.exp2(np.minimum(age / self.half_life, 1000)), self.prior_variances())
        # The variances of parameters that are not estimated, or that do not affect the row, do not change.
        self.variances = np.where((self.variances > 0) & (age > 0), grown, self.variances)
        self.last_seen = np.where(present, self.rows, self.last_seen)

    def _check_divergence(self, squared: float, expected: float) -> None:
        """Reset the variances to the prior if r^2 / S, averaged over about fifty rows, exceeds 10."""
        rate, threshold = 0.02, 10
        self.innovation_ratio += rate * (min(squared / expected, MAX_SQUARED_RATIO) - self.innovation_ratio)
        self.recent_squares += rate * (squared - self.recent_squares)
        if self.innovation_ratio <= threshold:
            return
        self.innovation_ratio = 1
        self.noise = self.noise.restarted(self.recent_squares / 2)
        self.variances = np.where(self.variances > 0, self.prior_variances(), 0)


def updated(
    theta: np.ndarray, P: np.ndarray, g: np.ndarray, gain: float, reduction: float, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return theta + P g gain and P - (P g)^2 reduction, which is at least epsilon P."""
    return theta + P * g * gain, np.maximum(P - (P * g) ** 2 * reduction, P * epsilon)


def posterior_scale(variance: np.ndarray | float) -> np.ndarray:
    """Return kappa = 1 / sqrt(1 + pi v / 8), with which E[logistic(f)] is about logistic(kappa E[f])."""
    return 1 / np.sqrt(1 + np.pi * np.asarray(variance) / 8)


def class_update(mean: float, variance: float, is_positive: bool, weight: float) -> tuple[float, float]:
    """Moment matching for log-odds f ~ N(mean, variance): return the gain and the reduction of one row.

    The evidence Z = E[P(y | f)] is logistic(kappa mean) or 1 minus that, hence gain = d log Z / d mean = kappa (y - p) and
    reduction = kappa^2 p (1 - p). This is a Gaussian observation of f with precision a = reduction / (1 - reduction v), and
    a row of weight w has the precision w a. Weights above 1 with weight * v above 4: see `heavy_update`.
    """
    if weight > 1 and weight * variance > 4:
        return heavy_update(mean, variance, is_positive, weight)
    kappa = float(posterior_scale(variance))
    p = logistic(kappa * mean)
    reduction = kappa**2 * p * (1 - p)
    repetition = weight / (1 + (weight - 1) * reduction * variance)
    return repetition * kappa * (is_positive - p), repetition * reduction


def heavy_update(mean: float, variance: float, is_positive: bool, weight: float) -> tuple[float, float]:
    """Laplace approximation of the posterior of log-odds f ~ N(mean, variance) after ``weight`` equal rows.

    The mode is the root of (f - mean) / variance = weight (y - logistic(f)). Return the gain and the reduction.
    """
    sign = 1 if is_positive else -1

    def derivative(f: float) -> float:
        return (f - mean) / variance - weight * sign * logistic(-sign * f)

    end = mean + sign * (abs(mean) + np.log1p(weight * variance))
    mode = scipy.optimize.brentq(derivative, mean, end, xtol=1e-13, rtol=1e-14)
    precision = weight * logistic(mode) * logistic(-mode)
    return (mode - mean) / variance, precision / (1 + precision * variance)


def is_censored(target: float, prediction: float, low: float, high: float) -> bool:
    """Return whether the target is at a bound and the prediction is at or beyond it."""
    return (target >= high and prediction >= target) or (target <= low and prediction <= target)
