#pragma once

#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad {

/// Result of `compute_phase_start`.
struct PhaseStart {
  SignedFactors<double> parameters;
  Index passes = 0;  ///< passes over all rows
};

/// Initialization for phase retrieval, y = (a'x)^2: relaxed-reflect-reflect iterations (Elser 2018) between the sets
/// {X z} and {u: |u| = sqrt(y)}, whose intersection contains X a:
/// u += relaxation (P_X(2 P_y u - u) - P_y u), where P_X and P_y are the projections on the sets. Starts from a
/// spectral estimate. Negative targets count as 0. Gauss-Newton then computes the fit to rounding.
PhaseStart compute_phase_start(const ObservedRows& rows, const NewtonOptions& options);

/// Whether the dim x dim Gram matrix of `compute_phase_start` is small enough to be stored and factorized.
bool can_compute_phase_start(Index dim);

}  // namespace dyad
