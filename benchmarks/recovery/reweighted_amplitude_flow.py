"""Reweighted amplitude flow.

G. Wang, G. B. Giannakis, Y. Saad, J. Chen: Phase retrieval via reweighted amplitude flow. IEEE Transactions on Signal Processing
66(11), 2018.
"""

from __future__ import annotations

import numpy as np

from phase import Array, PhaseEstimate, has_ended, leading_eigenvector

# Constants of the numerical experiments of the paper for real signals. The program that the authors published has 2000 iterations.
MAX_ITERATIONS = 2000
STEP = 2.0
WEIGHT_CONSTANT = 10.0  # beta: the weight of a row is r / (r + beta), r = |x'z| / psi
INITIAL_FRACTION = 3 / 13  # of the rows, with the largest psi, in the initialization
INITIAL_EXPONENT = 0.5  # the initialization weighs a row by psi to this power


def recover_signal(X: Array, y: Array) -> PhaseEstimate:
    """Estimate a from y = (Xa)^2 by reweighted gradient descent on the squared error of the amplitudes psi = sqrt(y).

    The start is the weighted maximal correlation initialization: the leading eigenvector of sum_i sqrt(psi_i) x_i x_i' over the
    rows with the largest psi_i, with the norm sqrt(mean(y)).
    """
    n = X.shape[0]
    amplitudes = np.sqrt(y)
    largest = np.argsort(amplitudes)[-int(INITIAL_FRACTION * n) :]
    weights = amplitudes[largest] ** INITIAL_EXPONENT
    z = np.sqrt(y.mean()) * leading_eigenvector(X[largest].T @ (weights[:, None] * X[largest]))
    for iteration in range(MAX_ITERATIONS):
        products = X @ z
        if has_ended(products, amplitudes):
            return PhaseEstimate(z, iteration)
        magnitudes = np.abs(products)
        weights = magnitudes / (magnitudes + WEIGHT_CONSTANT * amplitudes)
        z = z - STEP * (X.T @ (weights * (products - amplitudes * np.sign(products)))) / n
    return PhaseEstimate(z, MAX_ITERATIONS)
