#pragma once

#include <optional>
#include <vector>

#include "training/multi_pass/refine_context.h"

namespace dyad {

/// A filter to continue training with, from a fit to the cached rows in their units. A fit without variances gets
/// Laplace variances. `held_out_squares`: mean squared residual of held-out rows, if there were any.
template <typename Scalar>
KalmanFilter<Scalar> filter_from_fit(const RefineContext<Scalar>& context, const Posterior<double>& fit,
                                     const std::vector<double>& scales, std::optional<double> held_out_squares);

}  // namespace dyad
