#include "fit/metrics.h"

#include <algorithm>
#include <cmath>

#include "base/logistic.h"

namespace dyad {
namespace {

constexpr Index score_bins = 8192;
constexpr double largest_log_odds = 20;

Index bin_of(double probability) {
  if (std::isnan(probability)) return 0;
  const double p = std::clamp(probability, 1e-12, 1 - 1e-12);
  const double log_odds = std::clamp(std::log(p / (1 - p)), -largest_log_odds, largest_log_odds);
  return std::min(score_bins - 1,
                  static_cast<Index>((log_odds + largest_log_odds) / (2 * largest_log_odds) * double{score_bins}));
}

}  // namespace

double log_loss(double target, double probability) {
  constexpr double least = 1e-15;
  return -std::log(std::max(least, target > 0.5 ? probability : 1 - probability));
}

MetricSums::MetricSums(Task task) : task_(task) {
  if (task == Task::regression) return;
  negatives_.resize(score_bins);
  positives_.resize(score_bins);
}

void MetricSums::add(double target, double prediction, double weight) {
  if (weight == 0) return;
  weight_ += weight;
  const double off_mean = target - target_mean_;
  target_mean_ += weight * off_mean / weight_.value();
  target_squares_ += weight * off_mean * (target - target_mean_);
  if (task_ == Task::regression) {
    const double residual = target - prediction;
    loss_ += weight * residual * residual;
    absolute_ += weight * std::abs(residual);
    return;
  }
  loss_ += weight * log_loss(target, prediction);
  if ((target > 0.5) == (prediction > 0.5)) correct_ += weight;
  (target > 0.5 ? positives_ : negatives_)[static_cast<std::size_t>(bin_of(prediction))] += weight;
}

double MetricSums::area_under_curve() const {
  double below = 0;
  double won = 0;
  double positives = 0;
  for (std::size_t bin = 0; bin < positives_.size(); ++bin) {
    won += positives_[bin] * (below + negatives_[bin] / 2);
    below += negatives_[bin];
    positives += positives_[bin];
  }
  return positives > 0 && below > 0 ? won / (positives * below) : 0.5;
}

Metrics MetricSums::metrics() const {
  Metrics result;
  result.task = task_;
  result.weight = weight();
  if (weight() == 0) return result;
  const double variance = target_squares_.value() / weight();
  if (task_ == Task::regression) {
    result.rmse = std::sqrt(loss_sum() / weight());
    result.mae = absolute_.value() / weight();
    result.r2 = variance > 0 ? 1 - loss_sum() / target_squares_.value() : 0;
    result.of_best_constant = std::sqrt(variance);
  } else {
    result.logloss = loss_sum() / weight();
    result.accuracy = correct_.value() / weight();
    result.auc = area_under_curve();
    result.of_best_constant = entropy(target_mean_);
  }
  return result;
}

}  // namespace dyad
