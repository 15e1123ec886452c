#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

#include "solvers/kalman/filter.h"

namespace dyad {

/// Shares of the targets' variance that the weights and the interactions may explain before any data: a prior.
struct PriorShares {
  double weights = 0;
  double factors = 0;
};

/// What to race, the likeliest first; the last one allows hardly more than the mean of the targets.
inline const std::vector<PriorShares> usual_priors{{0.5, 0.01}, {0.5, 0.5},   {1.5, 0.01}, {1.5, 0.5},    {5, 0.01},
                                                   {5, 0.5},    {0.15, 0.01}, {0.15, 0.5}, {0.01, 0.0001}};

/// Statistics of the first rows. Outliers are clipped at ten times the typical size; rows of weight 0 are left out.
struct DataSummary {
  double entries = 1;       ///< of a row
  double left_length = 1;   ///< of a row, squared, with features of scale 1; symmetric: of all of it
  double right_length = 1;  ///< bilinear
  double target_mean = 0;
  double predictor_variance = 1;  ///< see Likelihood
  double initial_predictor = 0;   ///< of the constant model; with an identity link targets are centred, so that it is 0
  double least_target = 0;
  double most_target = 0;

  template <typename Scalar>
  static DataSummary at(const Rows<Scalar>& rows, std::span<const double> scales, const KalmanOptions& options);

  [[nodiscard]] Prior prior(const PriorShares& shares, const KalmanOptions& options) const;
};

}  // namespace dyad
