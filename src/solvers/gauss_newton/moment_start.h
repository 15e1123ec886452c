#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad {

/// Spectral initialization: weights from the first moments of the rows, and directions from their second moments, twice
/// as many as the rank.
struct MomentStart {
  double mean = 0;  ///< of the targets
  Vector<double> weights;
  Tall<double> directions;   ///< orthonormal columns per side
  Vector<double> strengths;  ///< eigenvalues or singular values of M, in descending order of their absolute values

  [[nodiscard]] Index positive_count(Index rank) const;  ///< among the `rank` largest

  /// Parameters from the `positive` largest and the `rank - positive` smallest eigenvalues.
  [[nodiscard]] SignedFactors<double> take(const NewtonOptions& options, Index positive) const;
};

/// Clips the targets at their 2% and 98% quantiles, because the moments contain fourth powers of the features.
MomentStart moment_start(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool);

}  // namespace dyad
