"""A further pass of the filter by stochastic expectation propagation (Li, Hernandez-Lobato and Turner 2015, docs/method.md)."""

from __future__ import annotations

import numpy as np

from .hierarchical import RELATIVE_MEAN_VARIANCE, HierarchicalFilter
from .kalman import class_update, is_censored

_MASK = (1 << 64) - 1


def random_order(count: int, seed: int, number: int) -> list[int]:
    """Return the order of the rows in pass ``number``: a shuffle (Durstenfeld 1964) by xoshiro256++ (Blackman and Vigna 2021)."""

    def split_mix(state: int) -> tuple[int, int]:
        state = state + 0x9E3779B97F4A7C15 & _MASK
        word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        word = (word ^ word >> 27) * 0x94D049BB133111EB & _MASK
        return state, word ^ word >> 31

    def rotate(word: int, bits: int) -> int:
        return (word << bits | word >> 64 - bits) & _MASK

    stream = _MASK - 3 - number
    state = split_mix(seed)[1] ^ stream * 0xD1342543DE82EF95 & _MASK
    words = []
    for _ in range(4):
        state, word = split_mix(state)
        words.append(word)
    a, b, c, d = words
    order = list(range(count))
    for i in range(count, 1, -1):
        j = (rotate(a + d & _MASK, 23) + a & _MASK) % i
        order[i - 1], order[j] = order[j], order[i - 1]
        a, b, c, d = a ^ d ^ b, b ^ c ^ a, c ^ a ^ b << 17 & _MASK, rotate(d ^ b, 45)
    return order


def relearn(filter: HierarchicalFilter, X: np.ndarray, y: np.ndarray, seed: int, number: int) -> None:
    """Learn rows that were learned before. The noise does not change. The prior is updated at the end of the pass."""
    if number == 2:
        filter.relative_deviation = 0.0
        filter.update_prior()
    feature_rows = (X != 0).sum(axis=0)
    for i in random_order(len(X), seed, number):
        remove_evidence(filter, X[i], feature_rows, len(X))
        g = filter._gradient(X[i], None)
        f, v = filter.parameters().predict(X[i]), filter._explained(X[i], g)
        if filter.is_class:
            filter._update(g, *class_update(f, v, y[i] > 0, 1))
        elif not is_censored(y[i], f, filter.low, filter.high):
            S = filter.noise.value + v
            filter._update(g, (y[i] - f) / S, 1 / S)
    filter.update_prior()


def remove_evidence(filter: HierarchicalFilter, x: np.ndarray, feature_rows: np.ndarray, rows: int) -> None:
    """Remove the share 1/n_j of the evidence of the features of a row, and 1/rows of that of the intercept and group means.

    The precision 1/P of a parameter is L + 1/tau. L and the part of m/P that is due to the data are multiplied by the rest.
    The prior of the intercept is removed with its evidence.
    """

    def remaining(m: np.ndarray, P: np.ndarray, tau: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        changes = (P > 0) & (share < 1)
        old, prior = 1 / np.where(changes, P, 1), 1 / np.where(changes, tau, 1)
        new = np.maximum(0, old - prior) * share + prior
        return np.where(changes, m * old * share / new, m), np.where(changes, 1 / new, P)

    present = x != 0
    shares = np.where(present, 1 - 1 / np.maximum(feature_rows, 1), 1)[:, None]
    means, variances = filter.places(filter.means.vector()), filter.places(filter.variances)
    means, variances = remaining(means, variances, filter.places(filter.prior_variances()), shares)
    filter.means = filter.means.with_vector(filter.vector(filter.means.intercept, means))
    filter.variances = filter.vector(filter.variances[0] / (1 - 1 / rows), variances)
    has_feature = np.isin(np.arange(len(filter.group_means)), filter.groups[present])
    shares = np.where(has_feature, 1 - 1 / rows, 1)[:, None]
    initial = np.append(np.full(filter.group_means.shape[1] - 2, filter.learned.initial[0]), filter.learned.initial[1:])
    tau = np.broadcast_to(RELATIVE_MEAN_VARIANCE * initial, filter.group_means.shape)
    filter.group_means, filter.group_variances = remaining(filter.group_means, filter.group_variances, tau, shares)
