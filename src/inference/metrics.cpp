#include "inference/metrics.h"

#include <algorithm>
#include <cmath>

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

MetricSums::MetricSums(Task task) : task_(task), likelihood_(&likelihood_of(task)) {
  if (!likelihood_->is_classification()) return;
  negatives_.resize(score_bins);
  positives_.resize(score_bins);
}

void MetricSums::add(double target, double prediction, double weight) {
  if (weight == 0) return;
  weight_ += weight;
  const double off_mean = target - target_mean_;
  target_mean_ += weight * off_mean / weight_.value();
  target_squares_ += weight * off_mean * (target - target_mean_);
  loss_ += weight * likelihood_->score(target, prediction);
  if (!likelihood_->is_classification()) {
    squares_ += weight * (target - prediction) * (target - prediction);
    absolute_ += weight * std::abs(target - prediction);
    return;
  }
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

double MetricSums::mean_score() const { return weight() > 0 ? loss_.value() / weight() : 0; }

double MetricSums::constant_score() const {
  return weight() > 0 ? likelihood_->constant_score(target_mean_, target_squares_.value() / weight()) : 0;
}

const char* loss_name(Task task) { return likelihood_of(task).figure_name(); }

Metrics MetricSums::metrics() const {
  Metrics result;
  result.task = task_;
  result.weight = weight();
  if (weight() == 0) return result;
  result.loss = likelihood_->figure(mean_score());
  result.of_best_constant = likelihood_->figure(constant_score());
  if (likelihood_->is_classification()) {
    result.logloss = result.loss;
    result.accuracy = correct_.value() / weight();
    result.auc = area_under_curve();
  } else {
    result.rmse = std::sqrt(squares_.value() / weight());
    result.mae = absolute_.value() / weight();
    result.r2 = target_is_constant() ? 0 : 1 - squares_.value() / target_squares_.value();
  }
  return result;
}

}  // namespace dyad
