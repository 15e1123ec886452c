#pragma once

#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad {

struct PhaseStart {
  SignedFactors<double> parameters;
  Index products = 0;  ///< passes over all rows
};

/// Initialization for phase retrieval, y = (a'x)^2: relaxed-reflect-reflect iterations (Elser 2018) between the two
/// sets that X a lies in, {X z} and {u: |u| = sqrt(y)}. Gauss-Newton then refines the result.
PhaseStart phase_start(const ObservedRows& rows, const NewtonOptions& options);

/// Whether `phase_start` may store a matrix of dim x dim numbers.
bool can_search_phases(Index dim);

}  // namespace dyad
