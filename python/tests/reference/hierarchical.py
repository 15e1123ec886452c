"""The Kalman filter with a hierarchical prior that is estimated along the stream (docs/method.md).

The parameters of feature j of group g are mu_g + d_j. `Filter.means` and `Filter.variances` are those of the intercept and of
d_j. Matrices "by place" have one column per factor, followed by the weight and the coefficient of the square.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from .kalman import MAX_SQUARED_RATIO, MIN_NOISE, Filter, Prior, updated
from .prediction import SignedFactors

PSEUDO_COUNT = 10  # parameters with the variance of the level above that each level of the prior adds
MAX_CHANGE_RATIO = 4  # an update changes a prior variance by at most this factor
FIRST_UPDATE, MIN_UPDATE_ROWS, UPDATE_GROWTH = 200, 100, 1.2
RELATIVE_DEVIATION = 0.15  # size of the random prior means of factors, relative to the standard deviation of the prior
RELATIVE_MEAN_VARIANCE = 0.3  # initial variance of mu_g, relative to that of d_j
RELATIVE_MEAN_DEVIATION = 0.2  # size of the random initial mu_g of factors, relative to sqrt(variance of mu_g)
INITIAL_NOISE_SHARE = 0.7
CLASS_VARIANCE = 4  # of the log-odds
MAX_WINDOWS = 6  # the noise estimate averages over at most this multiple of q rows


def approximate_exp(x: float) -> float:
    """Return the Pade approximant of exp(x)."""
    even, odd = 1 + x**2 / 12, x / 2
    return float((even + odd) / (even - odd))


@dataclasses.dataclass
class LogNoiseTracker:
    """Estimate of the noise variance s2 by an extended Kalman filter for log s2 with the variance Pl."""

    value: float
    unknowns: float  # number q of parameters that affect a row
    log_variance: float

    @classmethod
    def start(cls, value: float, unknowns: float) -> LogNoiseTracker:
        return cls(value, unknowns, 2 / unknowns)

    def restarted(self, value: float) -> LogNoiseTracker:
        return self.start(value, self.unknowns)

    def observe(self, squared: float, explained: float) -> None:
        """Update with r^2 and v. The log-likelihood of r ~ N(0, S), S = s2 + v, has the derivative omega/2 (r^2/S - 1) with
        respect to log s2 and the expected information omega^2/2, where omega = s2/S."""
        S = self.value + explained
        omega = self.value / S
        score = omega / 2 * (min(squared / S, MAX_SQUARED_RATIO) - 1)
        variance = 1 / (1 / self.log_variance + omega**2 / 2)
        self.value = max(self.value * approximate_exp(np.clip(variance * score, -1, 1)), MIN_NOISE)
        self.log_variance = max(variance, 2 / (MAX_WINDOWS * self.unknowns))


@dataclasses.dataclass
class FeatureNoise:
    """Noise variance s2 exp(sum_j l_j) with l_j ~ N(0, PRIOR) per feature, estimated beside the filter for error bars.

    Rows with a feature that no earlier row has share one more multiplier.
    """

    value: float
    unknowns: float
    log_variance: float
    new_multiplier: float
    new_variance: float
    rows_since_comparison: float
    advantage: float  # sum of the differences of the log-likelihoods of rows
    squared_advantage: float
    means: np.ndarray  # of l_j
    variances: np.ndarray  # of l_j; 0: the feature has no multiplier

    PRIOR = 0.0625
    MAX_SQUARED = 6.25  # limit of r^2 / S
    EXPECTED_SQUARED = 0.97755  # E min(z^2, 6.25) for z ~ N(0, 1)
    MAX_LOG_MULTIPLIER = 4
    COMPARISON_INTERVAL = 4

    def is_better(self) -> bool:
        return self.advantage > 2 * np.sqrt(self.squared_advantage)

    def at(self, multiplier: float, is_new: bool) -> float:
        """Return the noise variance of a row with this sum of l_j."""
        total = multiplier + (self.new_multiplier if is_new else 0)
        return self.value * float(np.exp(np.clip(total, -self.MAX_LOG_MULTIPLIER, self.MAX_LOG_MULTIPLIER)))

    def predict(self, x: np.ndarray, has_unknown: bool) -> float:
        """Return the expected noise variance of a row, E exp(l) = exp(PRIOR / 2) for an unknown feature."""
        return self.at(self.means[x != 0].sum() + (self.PRIOR / 2 if has_unknown else 0), has_unknown)

    def observe(self, x: np.ndarray, squared: float, explained: float, common: float) -> None:
        """Update with r^2 and v as `LogNoiseTracker.observe`. ``common``: noise variance of the filter."""
        present = x != 0
        is_new = bool((self.variances[present] == self.PRIOR).any())
        noise = self.at(self.means[present].sum(), is_new)
        S, common_S = noise + explained, common + explained
        self.rows_since_comparison += 1
        if self.rows_since_comparison >= self.COMPARISON_INTERVAL:
            self.rows_since_comparison = 0
            advantage = (np.log(common_S / S) + squared / common_S - squared / S) / 2
            self.advantage += advantage
            self.squared_advantage += advantage**2
        omega = noise / S
        uncertainty = self.variances[present].sum() + (self.new_variance if is_new else 0)
        inverse = 1 / (1 + omega**2 / 2 * (self.log_variance + uncertainty))
        mean = omega / 2 * (min(squared / S, self.MAX_SQUARED) - self.EXPECTED_SQUARED) * inverse
        precision = omega**2 / 2 * inverse
        self.value = max(self.value * approximate_exp(np.clip(self.log_variance * mean, -1, 1)), MIN_NOISE)
        self.log_variance = max(self.log_variance - self.log_variance**2 * precision, 2 / (MAX_WINDOWS * self.unknowns))
        if is_new:
            self.new_multiplier += self.new_variance * mean
            self.new_variance -= self.new_variance**2 * precision
        self.means = self.means + np.where(present, self.variances * mean, 0)
        self.variances = self.variances - np.where(present, self.variances**2 * precision, 0)


@dataclasses.dataclass
class HierarchicalPrior:
    """Prior variances for features of scale 1: `tau` has one row per group, by place."""

    initial: np.ndarray  # of factors, weights and squares
    tau: np.ndarray

    @classmethod
    def start(cls, initial: np.ndarray, groups: int, rank: int) -> HierarchicalPrior:
        row = np.concatenate([np.full(rank, initial[0]), initial[1:]])
        return cls(initial, np.tile(row, (groups, 1)))

    def update(self, squares: np.ndarray, counts: np.ndarray) -> None:
        """tau = (10 parent + sum dev^2) / (10 + sum c) on the levels all groups, group, place in the group."""

        def shrink(parent: np.ndarray, axes: tuple[int, ...], places: slice) -> np.ndarray:
            sums = [values[:, places].sum(axis=axes, keepdims=True) for values in (squares, counts)]
            return (PSEUDO_COUNT * parent + sums[0]) / (PSEUDO_COUNT + sums[1])

        old, tau = self.tau, np.empty_like(self.tau)
        rank = old.shape[1] - 2
        factors, linear = slice(0, rank), slice(rank, None)
        of_group = shrink(shrink(self.initial[0], (0, 1), factors), (1,), factors)
        tau[:, factors] = shrink(of_group, (), factors)
        tau[:, linear] = shrink(shrink(self.initial[1:], (0,), linear), (), linear)
        self.tau = np.clip(tau, old / MAX_CHANGE_RATIO, old * MAX_CHANGE_RATIO)


@dataclasses.dataclass(kw_only=True)
class HierarchicalFilter(Filter):
    """Filter with a hierarchical prior. `prior` contains the prior variance of the intercept."""

    learned: HierarchicalPrior
    groups: np.ndarray  # of each feature
    group_means: np.ndarray  # mu by place; the square has none
    group_variances: np.ndarray  # by place; 0: the group has no mean
    is_absorbed: bool  # whether the model contains the means in the intercept and the weights
    next_update: float  # number of rows at the next update of the prior
    signs: np.ndarray  # by place: random signs of the prior means of factors; otherwise 0
    feature_noise: FeatureNoise
    relative_deviation: float = RELATIVE_DEVIATION

    def places(self, vector: np.ndarray) -> np.ndarray:
        """Return the parameters of features in a vector (SignedFactors.vector) by place."""
        parameters = self.means.with_vector(vector)
        return np.column_stack([parameters.A, parameters.weights, parameters.squares])

    def vector(self, intercept: float, places: np.ndarray) -> np.ndarray:
        """Return the vector of an intercept and a matrix by place."""
        return np.concatenate([[intercept], places[:, -2], places[:, -1], places[:, :-2].ravel()])

    def parameters(self) -> SignedFactors:
        """Return mu_g + d_j of all features."""
        places = self.places(self.means.vector()) + self.group_means[self.groups]
        return self.means.with_vector(self.vector(self.means.intercept, places))

    def prior_variances(self) -> np.ndarray:
        """Return tau / scale^2 (squares: tau / scale^4); 0 for features that have not occurred."""
        units = self._units()
        variances = np.divide(self.learned.tau[self.groups], units**2, out=np.zeros_like(units), where=units > 0)
        return self.vector(self.prior.intercept, variances)

    def _units(self) -> np.ndarray:
        """Return the scales of the features by place: scale, and scale^2 for squares."""
        return np.column_stack([self.scales] * (self.means.A.shape[1] + 1) + [self.scales**2])

    def _explained(self, x: np.ndarray, g: np.ndarray) -> float:
        """Return v = sum P g^2 over d_j and mu_g, plus half of the variance of products of two factors."""
        P = self.places(self.variances) + self.group_variances[self.groups]
        return float(self.variances[0] + (P * self.places(g) ** 2).sum()) + self._second_order(P, x)

    def _second_order(self, P: np.ndarray, x: np.ndarray) -> float:
        """Return sum_c (sum_j P_jc x_j^2)^2, without the squares of single features unless the diagonal is tied.

        Bilinear: sum_c (sum_left P_jc x_j^2) (sum_right P_jc x_j^2) / 2.
        """
        terms = P[:, :-2] * x[:, None] ** 2
        left_dim = self.means.left_dim
        if left_dim:
            return float((terms[:left_dim].sum(axis=0) * terms[left_dim:].sum(axis=0)).sum() / 2)
        singles = 0 if self.means.diagonal == "tied" else (terms**2).sum()
        return float((terms.sum(axis=0) ** 2).sum() - singles)

    def _update(self, g: np.ndarray, gain: float, reduction: float) -> None:
        """Update d_j and mu_g. A row has at most one feature of a group with a mean, so that the gradients are equal."""
        super()._update(g, gain, reduction)
        of_means = np.zeros_like(self.group_means)
        np.add.at(of_means, self.groups, self.places(g))
        self.group_means, self.group_variances = updated(
            self.group_means, self.group_variances, of_means, gain, reduction, self.epsilon
        )

    def step(self, x: np.ndarray, y: float, weight: float, present: np.ndarray) -> float:
        """Update the posterior with one row, without features that have not occurred before."""
        return super().step(np.where(self.scales > 0, x, 0), y, weight, present)

    def _observe_noise(self, x: np.ndarray, squared: float, explained: float) -> None:
        if (self.group_variances > 0).any():
            self.feature_noise.observe(x, squared, explained, self.noise.value)
        super()._observe_noise(x, squared, explained)

    def noise_variance(self, x: np.ndarray, has_unknown: bool) -> float:
        """Return the noise variance of a row for error bars."""
        is_used = self.feature_noise.is_better()
        return self.feature_noise.predict(np.where(self.scales > 0, x, 0), has_unknown) if is_used else self.noise.value

    def _update_prior_if_due(self) -> None:
        if self.rows >= self.next_update:
            self.update_prior()
            self.next_update = max(self.rows + MIN_UPDATE_ROWS, np.floor(self.rows * UPDATE_GROWTH))

    def update_prior(self) -> None:
        """Estimate tau and exchange the prior in each posterior. With the precision L = 1/P - 1/tau of the data,
        P' = 1 / (L + 1/tau') and m' = P' (m/P - m0/tau + m0'/tau')."""
        units, m, P = self._units(), self.places(self.means.vector()), self.places(self.variances)
        learns = P > 0
        m, P = m * units, np.where(learns, P * units**2, 1)
        tau = self.learned.tau[self.groups]
        m0 = self._prior_means()
        squares, counts = np.zeros_like(self.learned.tau), np.zeros_like(self.learned.tau)
        np.add.at(squares, self.groups, np.where(learns, (m - m0) ** 2, 0))
        np.add.at(counts, self.groups, np.where(learns, np.maximum(0, 1 - P / tau), 0))
        self.learned.update(squares, counts)
        new_tau = self.learned.tau[self.groups]
        new_P = 1 / (1 / P - 1 / tau + 1 / new_tau)
        new_m = new_P * (m / P - m0 / tau + self._prior_means() / new_tau)
        units = np.where(learns, units, 1)
        self.means = self.means.with_vector(self.vector(self.means.intercept, np.where(learns, new_m / units, 0)))
        self.variances = self.vector(self.variances[0], np.where(learns, new_P / units**2, 0))

    def _prior_means(self) -> np.ndarray:
        return self.relative_deviation * np.sqrt(self.learned.tau[self.groups]) * self.signs

    def model_parameters(self) -> SignedFactors:
        """For groups of which every row has one feature, f does not change if the means are replaced by terms of the intercept
        and of the weights."""
        if not self.is_absorbed:
            return self.parameters()
        model, mu = self.means.copy(), self.group_means
        signs, is_tied = model.signs, model.diagonal == "tied"
        total = mu[:, :-2].sum(axis=0)
        singles = 0 if is_tied else mu[:, :-2] ** 2 @ signs
        model.intercept += float(mu[:, -2].sum() + total**2 @ signs - np.sum(singles))
        others = total - (0 if is_tied else mu[self.groups, :-2])
        model.weights += 2 * (model.A * others) @ signs
        return model

    def predict(self, x: np.ndarray, unknown: Sequence[int] = ()) -> tuple[float, float]:
        """Return f and its variance v without the noise. ``unknown``: group of each unknown feature of the row.

        An unknown feature has d = 0 with the variance tau, and the value 1. A feature of scale 0 has not occurred. It is
        unknown too, and has the value +1 or -1.
        """
        absent = np.flatnonzero((self.scales == 0) & (x != 0))
        groups = np.append(self.groups[absent], np.array(unknown, int))
        known, (dim, rank), count = self.means, self.means.A.shape, len(groups)
        # Unknown features of a bilinear model, whose groups are its sides, are in front of or behind the known ones.
        is_right = groups == 1 if known.left_dim else np.ones(count, bool)
        order = np.concatenate([dim + np.flatnonzero(~is_right), np.arange(dim), dim + np.flatnonzero(is_right)]).astype(int)
        all_groups = np.append(self.groups, groups)[order]
        values = np.concatenate([np.where(self.scales > 0, x, 0), np.sign(x[absent]), np.ones(len(unknown))])[order]
        tau = self.learned.tau[groups] * np.append(np.ones(rank + 1), known.diagonal == "free")
        row = dataclasses.replace(self, groups=all_groups)
        row.means = dataclasses.replace(
            known,
            weights=np.append(known.weights, np.zeros(count))[order],
            squares=np.append(known.squares, np.zeros(count))[order],
            A=np.vstack([known.A, np.zeros((count, rank))])[order],
            left_dim=known.left_dim + int((~is_right).sum()) if known.left_dim else 0,
        )
        row.variances = self.vector(self.variances[0], np.vstack([self.places(self.variances), tau])[order])
        return row.parameters().predict(values), row._explained(values, row._gradient(values, None))


def random_signs(seed: int, feature: int, count: int) -> np.ndarray:
    """Return random numbers +1 and -1 that depend on the seed and the feature only.

    They are the bits of a hash, the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
    """
    mask, increment = (1 << 64) - 1, 0x9E3779B97F4A7C15

    def mix(word: int) -> int:
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return word ^ word >> 31

    base = mix(mix(seed + increment & mask) + feature & mask)
    words = [mix(base + i * increment & mask) if i else base for i in range(count // 64 + 1)]
    return np.array([1.0 - 2.0 * (words[c // 64] >> c % 64 & 1) for c in range(count)])


def feature_signs(seed: int, dim: int, left_dim: int, rank: int) -> np.ndarray:
    """Return the random signs of all features, by place. The number of a feature is twice its index in its side, plus 1 on the
    right side."""
    numbers = [2 * (j - left_dim) + 1 if left_dim and j >= left_dim else 2 * j for j in range(dim)]
    return np.array([np.append(random_signs(seed, number, rank), [0, 0]) for number in numbers])


def clipped_moments(values: np.ndarray) -> tuple[float, float]:
    """Return mean and variance after values are clipped at 10 median absolute deviations from the (upper) median."""

    def median(numbers: np.ndarray) -> float:
        return float(np.sort(numbers)[len(numbers) // 2])

    center = median(values)
    threshold = 10 * median(np.abs(values - center))
    clipped = np.clip(values, center - threshold, center + threshold) if threshold > 0 else values
    return float(clipped.mean()), float(clipped.var())


def start(at: HierarchicalFilter, X: np.ndarray, y: np.ndarray, entries: np.ndarray, seed: int) -> HierarchicalFilter:
    """Return a filter without data, with the prior that follows from the first rows.

    ``at``: any filter with the shape, the groups and the scales of the features. ``entries``: number of entries of each row.
    """
    dim, rank, left_dim = *at.means.A.shape, at.means.left_dim
    Z = np.divide(X, at.scales, out=np.zeros_like(X), where=at.scales > 0)
    norms = [clipped_moments((side**2).sum(axis=1))[0] for side in ((Z[:, :left_dim], Z[:, left_dim:]) if left_dim else (Z,))]
    mean, variance = clipped_moments(y)
    V = CLASS_VARIANCE if at.is_class else variance
    products = np.prod(norms) if left_dim else 4 * max(1, norms[0] * (norms[0] - 1) / 2)
    weights = V / (2 * max(1, sum(norms)))
    initial = np.array([np.sqrt(V / (rank * products)), weights, weights])
    learned = HierarchicalPrior.start(initial, len(at.learned.tau), rank)
    has_mean = at.group_variances[:, :1] > 0
    group_variances = has_mean * RELATIVE_MEAN_VARIANCE * learned.tau * np.append(np.ones(rank + 1), 0)
    group_means = np.zeros_like(group_variances)
    for g in np.flatnonzero(has_mean):
        signs = random_signs(seed, 2 * (-1 - int(g)), rank)
        group_means[g, :rank] = RELATIVE_MEAN_DEVIATION * np.sqrt(group_variances[g, :rank]) * signs
    unknowns = max(100, clipped_moments(entries)[0] * (rank + 1))
    positive = (np.sum(y > 0) + 0.5) / (len(y) + 1)
    filter = dataclasses.replace(
        at,
        prior=Prior(1 if at.is_class else V / 4 + mean**2, weights, weights, initial[0]),
        noise=LogNoiseTracker.start(INITIAL_NOISE_SHARE * V, unknowns),
        learned=learned,
        group_means=group_means,
        group_variances=group_variances,
        signs=feature_signs(seed, dim, left_dim, rank),
        feature_noise=FeatureNoise(
            *(INITIAL_NOISE_SHARE * V, unknowns, 2 / unknowns, 0, FeatureNoise.PRIOR, 0, 0, 0),
            np.zeros(dim),
            np.where(has_mean[at.groups, 0], FeatureNoise.PRIOR, 0),
        ),
        relative_deviation=RELATIVE_DEVIATION,
        next_update=FIRST_UPDATE,
        rows=0.0,
        innovation_ratio=1.0,
        recent_squares=0.0,
    )
    filter.variances = filter.prior_variances()
    if at.means.diagonal != "free":
        filter.variances[1 + dim : 1 + 2 * dim] = 0
    units = filter._units()
    means = np.divide(filter._prior_means(), units, out=np.zeros_like(units), where=units > 0)
    intercept = float(np.log(positive / (1 - positive))) if at.is_class else 0.0
    filter.means = at.means.with_vector(filter.vector(intercept, means))
    return filter
