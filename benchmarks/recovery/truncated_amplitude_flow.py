"""Truncated amplitude flow.

G. Wang, G. B. Giannakis, Y. C. Eldar: Solving systems of random quadratic equations via truncated amplitude flow. IEEE Transactions
on Information Theory 64(2), 2018.
"""

from __future__ import annotations

import numpy as np

from phase import Array, PhaseEstimate, has_ended, leading_eigenvector

# Constants of the numerical experiments of the paper for real signals.
MAX_ITERATIONS = 1000
STEP = 0.6
TRUNCATION = 0.7  # gamma: the gradient omits rows with |x'z| < psi / (1 + gamma)
INITIAL_FRACTION = 1 / 6  # of the rows, with the largest psi / |x|, in the initialization


def recover_signal(X: Array, y: Array) -> PhaseEstimate:
    """Estimate a from y = (Xa)^2 by truncated gradient descent on the squared error of the amplitudes psi = sqrt(y).

    The start is the orthogonality-promoting initialization: the leading eigenvector of sum_i x_i x_i' / |x_i|^2 over the rows
    with the largest psi_i / |x_i|, with the norm sqrt(mean(y)).
    """
    n = X.shape[0]
    amplitudes = np.sqrt(y)
    row_norms = np.linalg.norm(X, axis=1)
    largest = np.argsort(amplitudes / row_norms)[-int(np.ceil(INITIAL_FRACTION * n)) :]
    directions = X[largest] / row_norms[largest, None]
    z = np.sqrt(y.mean()) * leading_eigenvector(directions.T @ directions)
    for iteration in range(MAX_ITERATIONS):
        products = X @ z
        if has_ended(products, amplitudes):
            return PhaseEstimate(z, iteration)
        is_kept = np.abs(products) * (1 + TRUNCATION) >= amplitudes
        z = z - STEP * (X.T @ (is_kept * (products - amplitudes * np.sign(products)))) / n
    return PhaseEstimate(z, MAX_ITERATIONS)
