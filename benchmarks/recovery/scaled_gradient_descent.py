"""ScaledGD, scaled gradient descent for low-rank matrices.

T. Tong, C. Ma, Y. Chi: Accelerating ill-conditioned low-rank matrix estimation via scaled gradient descent. Journal of Machine
Learning Research 22, 2021.

The paper assumes the restricted isometry property. Rank-one measurements do not have it, so its theorems do not apply here. The
paper has the form LR' for general matrices and LL' for positive semidefinite matrices. A symmetric M of mixed signs uses LR'. With
the spectral initialization, R = LS for a diagonal matrix S of signs, and the steps preserve this equation. The number of unknowns is
therefore that of the symmetric problem, and the signs are those of the initialization.
"""

from __future__ import annotations

import numpy as np

from measurements import RESIDUAL_TOLERANCE, MatrixEstimate, RankOneMeasurements

STEP = 0.5  # of the numerical experiments of the paper
# 5 times the limit of the authors' program. The sensitivity is stated in page.md.
MAX_ITERATIONS = 5000
# A step that increases the loss is repeated with half the step size. The paper has no such rule, but without the restricted
# isometry property, the constant step 0.5 fails for 2 to 6 rows per degree of freedom of symmetric sensing.
STEP_REDUCTION = 0.5
MIN_STEP = 1e-4


def recover_matrix(data: RankOneMeasurements, rank: int) -> MatrixEstimate:
    """Estimate M of the given rank by ScaledGD from the spectral initialization."""
    L, R = data.spectral_initialization(rank)
    residuals = data.residuals(L, R)
    loss = data.relative_residual(residuals)
    step = STEP
    for iteration in range(MAX_ITERATIONS):
        if loss < RESIDUAL_TOLERANCE or step < MIN_STEP:
            return MatrixEstimate(data.matrix(L, R), iteration)
        gradient = -data.adjoint(residuals)
        try:
            next_L = L - step * gradient @ R @ np.linalg.inv(R.T @ R)
            next_R = R - step * gradient.T @ L @ np.linalg.inv(L.T @ L)
        except np.linalg.LinAlgError:  # an estimate of lower rank has no scaled gradient
            return MatrixEstimate(data.matrix(L, R), iteration)
        next_residuals = data.residuals(next_L, next_R)
        next_loss = data.relative_residual(next_residuals)
        if next_loss < loss:
            L, R, residuals, loss = next_L, next_R, next_residuals, next_loss
        else:
            step *= STEP_REDUCTION
    return MatrixEstimate(data.matrix(L, R), MAX_ITERATIONS)
