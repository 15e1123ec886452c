"""Planted problems for the tests of the algorithms."""

from __future__ import annotations

import numpy as np

from measurements import Array, RankOneMeasurements

RANK = 3


def plant_signal(dim: int, rows: int, seed: int) -> tuple[Array, Array, Array]:
    """Return Gaussian rows, intensities and the signal of a phase retrieval problem."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(rows, dim))
    signal = random.normal(size=dim)
    return X, np.square(X @ signal), signal


def plant_symmetric(dim: int, rows: int, spectrum: list[float], seed: int) -> tuple[RankOneMeasurements, Array]:
    """Return measurements x'Mx and M with the given eigenvalues."""
    random = np.random.default_rng(seed)
    U = np.linalg.qr(random.normal(size=(dim, len(spectrum))))[0]
    M = (U * spectrum) @ U.T
    X = random.normal(size=(rows, dim))
    return RankOneMeasurements(X, X, np.einsum("ij,ij->i", X @ M, X)), M


def plant_bilinear(dim: int, rows: int, spectrum: list[float], seed: int) -> tuple[RankOneMeasurements, Array]:
    """Return measurements x'Mz with a linear term, and M with the given singular values."""
    random = np.random.default_rng(seed)
    U, V = (np.linalg.qr(random.normal(size=(dim, len(spectrum))))[0] for _ in range(2))
    M = (U * spectrum) @ V.T
    X, Z = random.normal(size=(2, rows, dim))
    columns = np.hstack([X, Z])
    y = np.einsum("ij,ij->i", X @ M, Z) + columns @ random.normal(size=2 * dim)
    return RankOneMeasurements(X, Z, y, columns), M
