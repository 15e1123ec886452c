#pragma once

#include "model/signed_factors.h"

namespace dyad {

/// Independent Gaussian posterior of all parameters: every solver returns one, and training continues from it.
template <typename Scalar>
struct Posterior {
  SignedFactors<Scalar> means;
  SignedFactors<Scalar> variances;  ///< same layout, signs unused; 0: not learned. Empty if they are unknown
  double noise_variance = 1;        ///< of the targets around the predictions; regression only

  [[nodiscard]] bool has_variances() const { return variances.dim() > 0; }

  template <typename Other>
  [[nodiscard]] Posterior<Other> cast() const {
    return {means.template cast<Other>(), variances.template cast<Other>(), noise_variance};
  }

  /// The same posterior for features that are divided by `factors`.
  [[nodiscard]] Posterior rescaled(std::span<const double> factors) const {
    Posterior result = *this;
    result.means.scale_features(factors);
    if (has_variances())
      for (int square = 0; square < 2; ++square) result.variances.scale_features(factors);
    return result;
  }
};

}  // namespace dyad
