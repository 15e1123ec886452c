"""Parts that the phase retrieval algorithms have in common."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Iterations end at this relative residual |(|Xz| - psi)| / |psi|. It is 100 times smaller than the error that counts as success.
RESIDUAL_TOLERANCE = 1e-7
# Iterations also end above this relative residual, at which they have diverged. That of z = 0 is 1.
DIVERGED_RESIDUAL = 1e3


@dataclasses.dataclass
class PhaseEstimate:
    """Estimate of a signal.

    Attributes
    ----------
    signal : Array
        Estimate of a, up to its sign.
    iterations : int
        Number of gradient steps.
    """

    signal: Array
    iterations: int


def leading_eigenvector(matrix: Array) -> Array:
    """Return the unit eigenvector of the largest eigenvalue of a symmetric matrix.

    The papers use 50 to 200 power iterations. The exact eigenvector is at least as accurate.
    """
    vectors: Array = np.linalg.eigh(matrix)[1]
    return vectors[:, -1]


def relative_residual(products: Array, amplitudes: Array) -> float:
    """Return |(|Xz| - psi)| / |psi| for the products Xz and the amplitudes psi."""
    return float(np.linalg.norm(np.abs(products) - amplitudes) / np.linalg.norm(amplitudes))


def has_ended(products: Array, amplitudes: Array) -> bool:
    """Return true if the iteration has converged or diverged."""
    residual = relative_residual(products, amplitudes)
    return residual < RESIDUAL_TOLERANCE or residual > DIVERGED_RESIDUAL


def signal_error(estimate: Array, signal: Array) -> float:
    """Return min(|z - a|, |z + a|) / |a|."""
    distance = min(np.linalg.norm(estimate - signal), np.linalg.norm(estimate + signal))
    return float(distance / np.linalg.norm(signal))
