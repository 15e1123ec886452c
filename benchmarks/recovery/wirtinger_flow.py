"""Wirtinger flow.

E. Candes, X. Li, M. Soltanolkotabi: Phase retrieval via Wirtinger flow: theory and algorithms. IEEE Transactions on Information
Theory 61(4), 2015.
"""

from __future__ import annotations

import numpy as np

from phase import Array, PhaseEstimate, has_ended, leading_eigenvector

# Constants of the numerical experiments of the paper.
MAX_ITERATIONS = 2500
MAX_STEP = 0.2
STEP_TIME_CONSTANT = 330.0  # iterations; the step is min(1 - exp(-t / 330), 0.2)


def recover_signal(X: Array, y: Array) -> PhaseEstimate:
    """Estimate a from y = (Xa)^2 by gradient descent on the squared error of the intensities.

    The start is the leading eigenvector of sum_i y_i x_i x_i' / n with the squared norm d sum_i y_i / sum_i |x_i|^2.
    """
    n, d = X.shape
    amplitudes = np.sqrt(y)
    squared_norm = d * y.sum() / np.square(X).sum()
    z = np.sqrt(squared_norm) * leading_eigenvector(X.T @ (y[:, None] * X) / n)
    for iteration in range(MAX_ITERATIONS):
        products = X @ z
        if has_ended(products, amplitudes):
            return PhaseEstimate(z, iteration)
        step = min(1 - np.exp(-(iteration + 1) / STEP_TIME_CONSTANT), MAX_STEP)
        z = z - step / squared_norm * (X.T @ ((np.square(products) - y) * products)) / n
    return PhaseEstimate(z, MAX_ITERATIONS)
