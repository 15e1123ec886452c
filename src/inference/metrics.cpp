#include "inference/metrics.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

/// Bins of the histogram of log-odds from which the AUC is computed. Pairs of rows in one bin count as ties.
constexpr Index log_odds_bin_count = 8192;
/// The histogram covers [-20, 20]; larger magnitudes are counted in the outermost bins. Their probabilities differ from
/// 0 or 1 by less than 2.1e-9. Sensitivity: docs/constants.md.
constexpr double max_abs_log_odds = 20;
/// Probabilities are clipped to [eps, 1 - eps] before the logarithm. log(1 / eps) = 27.6 is beyond max_abs_log_odds, so
/// the clipping does not change the bin.
constexpr double probability_margin = 1e-12;

Index bin_of(double probability) {
  if (std::isnan(probability)) return 0;
  const double p = std::clamp(probability, probability_margin, 1 - probability_margin);
  const double log_odds = std::clamp(std::log(p / (1 - p)), -max_abs_log_odds, max_abs_log_odds);
  return std::min(log_odds_bin_count - 1, static_cast<Index>((log_odds + max_abs_log_odds) / (2 * max_abs_log_odds) *
                                                             double{log_odds_bin_count}));
}

}  // namespace

MetricSums::MetricSums(Task task) : task_(task), likelihood_(&likelihood_of(task)) {
  if (!likelihood_->is_classification()) return;
  negatives_.resize(log_odds_bin_count);
  positives_.resize(log_odds_bin_count);
}

void MetricSums::add(double target, double prediction, double weight) {
  if (weight == 0) return;
  weight_ += weight;
  // Running weighted mean and sum of squared deviations (West, 1979).
  const double deviation = target - target_mean_;
  target_mean_ += weight * deviation / weight_.value();
  target_squares_ += weight * deviation * (target - target_mean_);
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
  double negatives_below = 0;  // weight of the negative rows in lower bins
  double concordant = 0;       // weight of the pairs in which the positive row has the higher log-odds; ties count half
  double positives = 0;
  for (std::size_t bin = 0; bin < positives_.size(); ++bin) {
    concordant += positives_[bin] * (negatives_below + negatives_[bin] / 2);
    negatives_below += negatives_[bin];
    positives += positives_[bin];
  }
  return positives > 0 && negatives_below > 0 ? concordant / (positives * negatives_below) : 0.5;
}

double MetricSums::mean_score() const { return weight() > 0 ? loss_.value() / weight() : 0; }

double MetricSums::constant_score() const {
  return weight() > 0 ? likelihood_->constant_score(target_mean_, target_squares_.value() / weight()) : 0;
}

const char* loss_name(Task task) { return likelihood_of(task).metric_name(); }

Metrics MetricSums::metrics() const {
  Metrics result;
  result.task = task_;
  result.weight = weight();
  if (weight() == 0) return result;
  result.loss = likelihood_->metric(mean_score());
  result.constant_loss = likelihood_->metric(constant_score());
  if (likelihood_->is_classification()) {
    result.logloss = result.loss;
    result.accuracy = correct_.value() / weight();
    result.auc = area_under_curve();
  } else {
    result.rmse = std::sqrt(squares_.value() / weight());
    result.mae = absolute_.value() / weight();
    result.r2 = is_target_constant() ? 0 : 1 - squares_.value() / target_squares_.value();
  }
  return result;
}

}  // namespace dyad
