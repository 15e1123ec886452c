#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad {

/// Spectral initialization from the moments of the rows, for features of mean 0 and variance 1: w = E[r x], and the
/// leading eigenpairs (bilinear: singular triplets) of E[r x x'] / 2 (bilinear: E[r x z']), where r is the deviation of
/// the clipped target from its mean. It has twice as many directions as the rank of the model, because the leading
/// directions of the required sign may not be among the first k.
struct MomentStart {
  double target_mean = 0;  ///< of the clipped targets
  Vector<double> weights;
  RowMajorMatrix<double> directions;  ///< one per column; orthonormal on each side
  Vector<double> spectrum;            ///< eigenvalues or singular values, by descending absolute value

  /// Parameters with as many positive factors as there are positive values among the first k; only positive factors if
  /// the shape requires it. Factors whose eigenvalue has the other sign or is small get a minimum scale.
  [[nodiscard]] SignedFactors<double> to_parameters(const NewtonOptions& options) const;
};

/// Computes the moments of targets that are clipped at their 2% and 98% quantiles, because the second moments contain
/// fourth powers of the features. Subspace iteration starts from random directions with the seed `options.seed`.
MomentStart compute_moment_start(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool);

}  // namespace dyad
