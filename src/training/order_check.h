#pragma once

#include <cmath>

#include "inference/metrics.h"

namespace dyad {

/// Detects that progressive losses (each row is predicted before it is learned) measure the order of the rows instead
/// of the model. Rows sorted by their target, for example, are predicted well from the preceding targets alone.
///
/// The reference predictor is the exponentially weighted mean of the preceding targets, whose weights decay by a factor
/// e over `window_rows` rows. For rows in random order its expected squared error is 1 + 1/(2 window_rows) times
/// the variance, so that it does not outperform the best constant. order_predicts_targets() is true if the gain
/// of the reference over the best constant is at least `min_gain_ratio` times the gain of the model.
class OrderCheck {
 public:
  explicit OrderCheck(Task task) : likelihood_(&likelihood_of(task)) {}

  void add(double target, double weight) {
    if (weight == 0) return;
    loss_ += weight * reference_loss(target);
    weight_ += weight;
    const double decay = std::exp(-weight / window_rows);
    sum_ = decay * sum_ + (1 - decay) * window_rows * target;
    decayed_weight_ = decay * decayed_weight_ + (1 - decay) * window_rows;
    ++count_;
  }

  /// `model`: metrics of the model on the same rows.
  [[nodiscard]] bool order_predicts_targets(const MetricSums& model) const {
    if (count_ < min_rows) return false;
    const double constant = model.constant_score();
    const double gain = constant - model.mean_score();
    return gain > 0 && constant - loss_.value() / weight_.value() >= min_gain_ratio * gain;
  }

 private:
  // Decay length of the reference, in rows of weight 1. Sensitivity: docs/constants.md.
  static constexpr double window_rows = 32;
  // About three windows; with fewer rows no decision is made. Sensitivity: docs/constants.md.
  static constexpr Index min_rows = 100;
  // Gain of the reference divided by the gain of the model. Sensitivity: docs/constants.md.
  static constexpr double min_gain_ratio = 0.5;

  /// Loss of the reference predictor; 0 for the first row.
  [[nodiscard]] double reference_loss(double target) const {
    return decayed_weight_ > 0 ? likelihood_->score(target, likelihood_->constant_mean(sum_, decayed_weight_)) : 0;
  }

  const Likelihood* likelihood_;
  CompensatedSum loss_;        ///< weighted loss of the reference predictor
  CompensatedSum weight_;      ///< sum of the weights of all rows
  double sum_ = 0;             ///< decayed sum of the preceding targets
  double decayed_weight_ = 0;  ///< decayed sum of their weights
  Index count_ = 0;            ///< number of rows with a positive weight
};

}  // namespace dyad
