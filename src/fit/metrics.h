#pragma once

#include <vector>

#include <dyad/metrics.h>

#include "base/compensated_sum.h"

namespace dyad {

/// Running sums from which metrics come, in constant memory.
class MetricSums {
 public:
  explicit MetricSums(Task task);

  /// Regression: both in the units of the target. Classes: the target is 0 or 1, the prediction a probability.
  void add(double target, double prediction, double weight);

  [[nodiscard]] Metrics metrics() const;
  [[nodiscard]] double weight() const { return weight_.value(); }
  [[nodiscard]] double loss_sum() const { return loss_.value(); }  ///< squares, or log-losses
  [[nodiscard]] bool target_is_constant() const { return !(target_squares_.value() > 0); }

 private:
  [[nodiscard]] double area_under_curve() const;

  Task task_;
  CompensatedSum weight_;
  CompensatedSum loss_;
  CompensatedSum absolute_;
  CompensatedSum correct_;
  double target_mean_ = 0;
  CompensatedSum target_squares_;  ///< around the mean
  std::vector<double> negatives_;  ///< weights by score
  std::vector<double> positives_;
};

/// -log of the probability given to what happened.
double log_loss(double target, double probability);

}  // namespace dyad
