#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

#include "solvers/kalman/filter.h"

namespace dyad {

/// Prior variances of w'x (`weights`) and of the interactions (`factors`), as multiples of the variance of the linear
/// predictor.
struct PriorShares {
  double weights = 0;
  double factors = 0;
};

/// Fixed priors of the random starts of measurements (models without a linear term).
inline const std::vector<PriorShares> measurement_prior_shares{{0.5, 0.5}, {1.5, 0.5}, {5, 0.5}};

/// Statistics of the first rows, from which the priors are computed. Values are clipped at 10 median absolute
/// deviations from their median. Rows of weight 0 are ignored.
struct DataSummary {
  double entries_per_row = 1;     ///< mean number of non-zeros, at least 1
  double left_squared_norm = 1;   ///< mean of |x|^2, with features divided by their scales; bilinear: of the left side
  double right_squared_norm = 1;  ///< bilinear: mean of |z|^2
  double target_mean = 0;
  double predictor_variance = 1;  ///< Likelihood::predictor_variance()
  double initial_predictor = 0;  ///< linear predictor of the constant model; 0 with an identity link, for which targets
                                 ///< are centered
  double min_target = 0;         ///< after clipping
  double max_target = 0;         ///< after clipping

  /// Computes the statistics of the rows. `scales`: of the features; features of scale 0 are ignored.
  template <typename Scalar>
  static DataSummary of(const Rows<Scalar>& rows, std::span<const double> scales, const KalmanOptions& options);

  /// Variances such that weights and interactions explain these shares of the variance of the linear predictor.
  [[nodiscard]] Prior prior(const PriorShares& shares, const KalmanOptions& options) const;

  /// Initial variances of a hierarchical prior: weights explain half of the variance of the linear predictor, and
  /// interactions all of it, because factors that start with too little variance vanish.
  [[nodiscard]] Prior hierarchical_prior(const KalmanOptions& options) const;
};

}  // namespace dyad
