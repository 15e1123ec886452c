#pragma once

#include "model/signed_factors.h"

namespace dyad {

/// A mean and a variance for every parameter; variances stand where their means do. 0: it is not learned.
template <typename Scalar>
struct Beliefs {
  SignedFactors<Scalar> means;
  SignedFactors<Scalar> variances;  ///< its signs mean nothing

  template <typename Other>
  [[nodiscard]] Beliefs<Other> cast() const {
    return {means.template cast<Other>(), variances.template cast<Other>()};
  }
};

}  // namespace dyad
