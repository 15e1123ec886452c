#include "solvers/anova/response.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "solvers/anova/anova_fit.h"

namespace dyad {
namespace {

/// Smallest weight p (1 - p) of a row of a class, 0.04 of the largest one. Without it, rows with a probability near 0
/// or 1 have working responses without bound.
constexpr double min_class_weight = 0.01;
/// Prior variance of log-odds: two standard deviations, 4, correspond to a probability of 0.98.
constexpr double log_odds_variance = 4;

}  // namespace

void WorkingRows::update_mean() {
  double sum = 0;
  total_weight = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    sum += weight(i) * z[i];
    total_weight += weight(i);
  }
  mean = sum / total_weight;
}

ResponseLink::ResponseLink(const AnovaOptions& options)
    : is_classification(options.is_classification),
      low(options.low.value_or(-std::numeric_limits<double>::infinity())),
      high(options.high.value_or(std::numeric_limits<double>::infinity())) {}

void ResponseLink::linearize(std::span<const double> targets, std::span<const double> weights,
                             std::span<const double> predictor, WorkingRows& rows, bool keeps_weights) const {
  rows.z.resize(targets.size());
  if (is_classification) {
    rows.weights.resize(targets.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const double probability = 1 / (1 + std::exp(-predictor[i]));
      const double repetitions = weights.empty() ? 1 : weights[i];
      if (!keeps_weights) rows.weights[i] = repetitions * std::max(probability * (1 - probability), min_class_weight);
      rows.z[i] = predictor[i] +
                  (repetitions > 0 ? ((targets[i] > 0 ? 1 : 0) - probability) * repetitions / rows.weights[i] : 0);
    }
  } else {
    rows.weights.assign(weights.begin(), weights.end());
    for (std::size_t i = 0; i < targets.size(); ++i)
      rows.z[i] = targets[i] >= high  ? std::max(targets[i], predictor[i])
                  : targets[i] <= low ? std::min(targets[i], predictor[i])
                                      : targets[i];
  }
  rows.update_mean();
}

Response::Response(std::span<const double> targets, std::span<const double> weights, const AnovaOptions& options)
    : targets_(targets.begin(), targets.end()), weights_(weights.begin(), weights.end()), link_(options) {
  rows_.z = targets_;
  rows_.weights = weights_;
  rows_.update_mean();
  total_repetitions_ = rows_.total_weight;
  if (link_.is_classification) {
    for (double& target : targets_) target = target > 0 ? 1 : 0;
    prior_variance_ = log_odds_variance;
    return;
  }
  is_censored_ = std::any_of(targets_.begin(), targets_.end(), [&](double y) { return link_.is_censored(y); });
  double sum = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const double residual = targets_[i] - rows_.mean;
    sum += rows_.weight(i) * residual * residual;
  }
  // The rounding error of the mean of equal targets is no variance.
  const double rounding = std::numeric_limits<double>::epsilon() * rows_.mean;
  const double variance = sum / rows_.total_weight;
  prior_variance_ = variance > 100 * rounding * rounding ? variance : 1;
}

std::vector<double> Response::start_predictor() const {
  double start = 0;
  if (link_.is_classification) {
    double positives = 0;
    double total = 0;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const double weight = weights_.empty() ? 1 : weights_[i];
      positives += weight * targets_[i];
      total += weight;
    }
    // The bounds keep the log-odds finite if all rows belong to one class.
    const double min_probability = 0.5 / (total + 1);
    const double probability = std::clamp(positives / total, min_probability, 1 - min_probability);
    start = std::log(probability / (1 - probability));
  }
  return std::vector<double>(targets_.size(), start);
}

void Response::set_precisions(std::span<const double> precisions) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = 0; i < precisions.size(); ++i) {
    sum += repetitions(i) * precisions[i];
    count += repetitions(i);
  }
  precisions_.resize(precisions.size());
  rows_.weights.resize(precisions.size());
  for (std::size_t i = 0; i < precisions.size(); ++i) {
    precisions_[i] = precisions[i] * count / sum;
    rows_.weights[i] = repetitions(i) * precisions_[i];
  }
  rows_.update_mean();
}

double Response::log_likelihood(std::span<const double> predictor) const {
  double sum = 0;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const double margin = targets_[i] > 0 ? predictor[i] : -predictor[i];
    sum -= repetitions(i) * (std::max(0.0, -margin) + std::log1p(std::exp(-std::abs(margin))));
  }
  return sum;
}

void Response::update(std::span<const double> predictor, bool keeps_weights) {
  if (link_.is_classification || (is_censored_ && has_fit_))
    link_.linearize(targets_, weights_, predictor, rows_, keeps_weights);
  has_fit_ = true;
}

}  // namespace dyad
