#pragma once

#include <dyad/model.h>

namespace dyad {

/// f(x) = b + w'x + sum_c lambda_c (U'x)_c^2, from the projections U'x and w'x of one row.
template <typename Scalar>
Scalar predict_row(const Model<Scalar>& model, const Scalar* Ux, Scalar wx) {
  Scalar prediction = model.intercept + wx;
  const Scalar* lambda = model.spectrum.data();
  for (Index c = 0; c < model.rank(); ++c) prediction += lambda[c] * Ux[c] * Ux[c];
  return prediction;
}

}  // namespace dyad
