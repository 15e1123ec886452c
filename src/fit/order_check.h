#pragma once

#include <cmath>

#include "fit/metrics.h"

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
  explicit OrderCheck(Task task) : task_(task) {}

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

  /// `of_model`: the metrics of the model on the same rows.
  [[nodiscard]] bool is_about_order(const Metrics& of_model) const {
    constexpr Index fewest_rows = 100;  // a few windows
    if (count_ < fewest_rows) return false;
    // Squared errors add, their roots do not.
    const auto added = [&](double loss) { return task_ == Task::regression ? loss * loss : loss; };
    const double constant = added(of_model.of_best_constant);
    const double gain = constant - added(of_model.loss());
    return gain > 0 && constant - loss_.value() / weight_.value() >= gain / 2;
  }

 private:
  [[nodiscard]] double loss_of_mean(double target) const {
    if (task_ == Task::regression) return rows_ > 0 ? std::pow(target - sum_ / rows_, 2) : 0;
    constexpr double prior_rows = 0.5;  // of each class (Jeffreys)
    return log_loss(target, (sum_ + prior_rows) / (rows_ + 2 * prior_rows));
  }

  Task task_;
  CompensatedSum loss_;
  CompensatedSum weight_;
  double sum_ = 0;   ///< of the targets before, decayed
  double rows_ = 0;  ///< of their weights
  Index count_ = 0;
};

}  // namespace dyad
