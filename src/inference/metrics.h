#pragma once

#include <vector>

#include <dyad/metrics.h>

#include "base/compensated_sum.h"
#include "likelihood/likelihood.h"

namespace dyad {

/// Running sums from which metrics come, in constant memory.
class MetricSums {
 public:
  explicit MetricSums(Task task);

  /// Regression: both in the units of the target. Classes: the target is 0 or 1, the prediction a probability.
  void add(double target, double prediction, double weight);

  [[nodiscard]] Metrics metrics() const;
  [[nodiscard]] double weight() const { return weight_.value(); }
  /// Mean scores (Likelihood::score) of the predictions and of the best constant; 0 without rows.
  [[nodiscard]] double mean_score() const;
  [[nodiscard]] double constant_score() const;
  [[nodiscard]] bool target_is_constant() const { return !(target_squares_.value() > 0); }

 private:
  [[nodiscard]] double area_under_curve() const;

  Task task_;
  const Likelihood* likelihood_;
  CompensatedSum weight_;
  CompensatedSum loss_;
  CompensatedSum squares_;  ///< of the residuals
  CompensatedSum absolute_;
  CompensatedSum correct_;
  double target_mean_ = 0;
  CompensatedSum target_squares_;  ///< around the mean
  std::vector<double> negatives_;  ///< weights by score
  std::vector<double> positives_;
};

}  // namespace dyad
