#pragma once

#include <optional>
#include <vector>

#include "training/multi_pass/multi_pass_context.h"

namespace dyad {

/// Converts a fit to the cached rows, in the units of the rows, to a filter that can continue training.
///
/// The variances are those of the fit, or the Laplace variances 1 / (1/prior + sum g^2 / noise), with g the gradient of
/// the prediction, if the fit has none. `scales`: of the features. `held_out_squared_residual`: mean squared residual
/// of held-out rows; null if none were held out.
template <typename Scalar>
KalmanFilter<Scalar> filter_from_fit(const MultiPassContext<Scalar>& context, const Posterior<double>& fit,
                                     const std::vector<double>& scales,
                                     std::optional<double> held_out_squared_residual);

}  // namespace dyad
