#pragma once

#include <vector>

#include <dyad/evaluate.h>

#include "base/compensated_sum.h"
#include "likelihood/likelihood.h"

namespace dyad {

/// src/inference: prediction with error bars, evaluation and inspection of trained models.
///
/// MetricSums accumulates weighted sums over rows, from which the metrics of a model are computed in constant memory.
/// Not thread-safe.
class MetricSums {
 public:
  explicit MetricSums(Task task);

  /// Regression: target and prediction in the units of the data. Classification: the target is 0 or 1, and the
  /// prediction is the probability of class 1.
  void add(double target, double prediction, double weight);

  [[nodiscard]] Metrics metrics() const;
  /// Total weight of the rows.
  [[nodiscard]] double weight() const { return weight_.value(); }
  /// Weighted mean of Likelihood::score over the rows; 0 without rows.
  [[nodiscard]] double mean_score() const;
  /// The same for the best constant prediction.
  [[nodiscard]] double constant_score() const;
  [[nodiscard]] bool is_target_constant() const { return !(target_squares_.value() > 0); }

 private:
  /// Area under the ROC curve from the histograms: the probability that a positive row has higher predicted
  /// log-odds than a negative row. Two rows in the same bin count as half.
  [[nodiscard]] double area_under_curve() const;

  Task task_;
  const Likelihood* likelihood_;
  CompensatedSum weight_;
  CompensatedSum loss_;      ///< Likelihood::score
  CompensatedSum squares_;   ///< squared residuals; regression
  CompensatedSum absolute_;  ///< absolute residuals; regression
  CompensatedSum correct_;   ///< weight of correctly classified rows
  double target_mean_ = 0;
  CompensatedSum target_squares_;  ///< squared deviations from target_mean_
  std::vector<double> negatives_;  ///< classification: histogram of the log-odds, weight of negative rows per bin
  std::vector<double> positives_;  ///< likewise for positive rows
};

}  // namespace dyad
