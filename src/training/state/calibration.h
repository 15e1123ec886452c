#pragma once

#include "base/archive.h"

namespace dyad {

/// Calibration of scores by one-dimensional logistic regression (Platt 1999): log-odds = intercept + slope * score. The
/// scores must come from rows that were not used to fit their model. Each row is one step of an extended Kalman filter
/// for the two parameters with covariance P: with g = (1, score), p = logistic(log-odds), a = p (1 - p) weight,
///
///     v = g'Pg,   theta += P g weight (y - p) / (1 + a v),   P -= (P g)(P g)' a / (1 + a v).
///
/// Not thread-safe.
class Calibration {
 public:
  [[nodiscard]] double log_odds(double score) const { return intercept_ + slope_ * score; }
  [[nodiscard]] double intercept() const { return intercept_; }
  [[nodiscard]] double slope() const { return slope_; }

  /// Updates the parameters with a row. `positive`: 1 for the positive class, 0 otherwise.
  void learn(double score, double positive, double weight);

  /// Increases the variances, because the following scores come from another model.
  void increase_variances();

  void archive(Archive& archive);

 private:
  double intercept_ = 0;
  double slope_ = 2;               ///< a score E[y] of classes -1 and +1 has log-odds 2 atanh(E[y]), about 2 E[y]
  double intercept_variance_ = 4;  ///< prior variance of the intercept: standard deviation 2, in log-odds
  double covariance_ = 0;
  double slope_variance_ = 1;  ///< prior variance of the slope: standard deviation 1, half of its mean
};

}  // namespace dyad
