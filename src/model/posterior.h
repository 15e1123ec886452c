#pragma once

#include "model/signed_factors.h"

namespace dyad {

/// Gaussian posterior with independent parameters (diagonal covariance). Every solver returns one, and resumed training
/// continues from it.
template <typename Scalar>
struct Posterior {
  SignedFactors<Scalar> means;
  SignedFactors<Scalar> variances;  ///< per parameter; signs are unused. 0: parameter not estimated. Empty: unknown
  double noise_variance = 1;        ///< variance of the targets given the predictions; regression only

  [[nodiscard]] bool has_variances() const { return variances.dim() > 0; }

  template <typename Other>
  [[nodiscard]] Posterior<Other> cast() const {
    return {means.template cast<Other>(), variances.template cast<Other>(), noise_variance};
  }

  /// Posterior of the same function after each feature x_j is divided by factors[j].
  [[nodiscard]] Posterior rescaled(std::span<const double> factors) const {
    Posterior result = *this;
    result.means.scale_features(factors);
    // A parameter that is multiplied by f has a variance that is multiplied by f^2, hence two passes.
    if (has_variances())
      for (int pass = 0; pass < 2; ++pass) result.variances.scale_features(factors);
    return result;
  }
};

}  // namespace dyad
