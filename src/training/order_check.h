#pragma once

#include <cmath>

#include "inference/metrics.h"

namespace dyad {

/// Tells whether losses of rows that are predicted before they are learned measure the order of the rows rather than
/// the model: rows sorted by their target are predicted well by the targets just before them, whatever their features.
///
/// The reference is the mean of the targets before a row, with weights that fall by a factor e over `window` rows. For
/// rows in random order its squared error exceeds the variance by 1/(2 window), so that it never beats the best
/// constant by more than chance. The losses are taken to measure the order if at least half of what the model gains
/// over the best constant is gained by this mean, too.
class OrderCheck {
 public:
  explicit OrderCheck(Task task) : likelihood_(&likelihood_of(task)) {}

  void add(double target, double weight) {
    if (weight == 0) return;
    loss_ += weight * loss_of_mean(target);
    weight_ += weight;
    constexpr double window = 32;
    const double kept = std::exp(-weight / window);
    sum_ = kept * sum_ + (1 - kept) * window * target;
    rows_ = kept * rows_ + (1 - kept) * window;
    ++count_;
  }

  /// `of_model`: of the model on the same rows.
  [[nodiscard]] bool is_about_order(const MetricSums& of_model) const {
    constexpr Index fewest_rows = 100;  // a few windows
    if (count_ < fewest_rows) return false;
    const double constant = of_model.constant_score();
    const double gain = constant - of_model.mean_score();
    return gain > 0 && constant - loss_.value() / weight_.value() >= gain / 2;
  }

 private:
  [[nodiscard]] double loss_of_mean(double target) const {
    return rows_ > 0 ? likelihood_->score(target, likelihood_->constant_mean(sum_, rows_)) : 0;
  }

  const Likelihood* likelihood_;
  CompensatedSum loss_;
  CompensatedSum weight_;
  double sum_ = 0;   ///< of the targets before, decayed
  double rows_ = 0;  ///< of their weights
  Index count_ = 0;
};

}  // namespace dyad
