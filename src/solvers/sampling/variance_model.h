#pragma once

#include <span>
#include <vector>

#include "solvers/sampling/feature_columns.h"

namespace dyad {

/// Model of the posterior variance of the linear predictor, log v = a + sum_j t_j x_j^2, fitted to the sample variances
/// of the rows by ridge regression (coordinate descent).
struct VarianceModel {
  double intercept = 0;              ///< a
  std::vector<double> coefficients;  ///< t

  /// `variances`: of the rows of the columns. Rows of weight 0 are left out.
  static VarianceModel fit(const FeatureColumns& columns, std::span<const double> variances,
                           std::span<const float> weights);
};

}  // namespace dyad
