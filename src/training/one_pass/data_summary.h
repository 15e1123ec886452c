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

/// Priors of the candidates with a random start, by descending plausibility. If memory does not suffice for all of
/// them, the first ones are used. On four data sets the selection is within 0.3% of the best of 63 fixed priors
/// (docs/method.md). The last prior allows little more than the mean of the targets.
inline const std::vector<PriorShares> default_prior_shares{
    {0.5, 0.01}, {0.5, 0.5}, {1.5, 0.01}, {1.5, 0.5}, {5, 0.01}, {5, 0.5}, {0.15, 0.01}, {0.15, 0.5}, {0.01, 0.0001}};

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
};

}  // namespace dyad
