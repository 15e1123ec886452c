#pragma once

#include <dyad/model.h>

namespace dyad {

/// b + w'x + sum_c lambda_c (U'x)_c (V'z)_c from the projections of one row; symmetric: both are U'x. The squares,
/// where the model has any, come on top.
template <typename Scalar>
Scalar predict_row(const Model<Scalar>& model, const Scalar* left, const Scalar* right, Scalar linear) {
  Scalar prediction = model.intercept + linear;
  const Scalar* lambda = model.spectrum.data();
  for (Index c = 0; c < model.rank(); ++c) prediction += lambda[c] * left[c] * right[c];
  return prediction;
}

}  // namespace dyad
