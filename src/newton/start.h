#pragma once

#include <dyad/rows.h>

#include "base/workers.h"
#include "model/signed_factors.h"
#include "newton/newton_options.h"

namespace dyad {

/// What the moments of kept rows say: weights, and twice as many directions as factors are wanted.
template <typename Scalar>
struct MomentStart {
  Scalar mean = 0;  ///< of the targets
  Vector<Scalar> weights;
  Tall<Scalar> directions;   ///< orthonormal columns, each side for itself
  Vector<Scalar> strengths;  ///< eigenvalues or singular values of M, strongest first

  [[nodiscard]] Index positive_count(Index rank) const;  ///< among the `rank` strongest

  /// The strongest `positive` positive and `rank - positive` negative directions.
  [[nodiscard]] SignedFactors<Scalar> take(const NewtonOptions& options, Index positive) const;
};

/// Targets are clipped at their 2% and 98% quantiles, which the fourth powers of features ask for.
template <typename Scalar>
MomentStart<Scalar> moment_start(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers);

}  // namespace dyad
