#include "training/state/calibration.h"

#include <algorithm>
#include <cmath>

#include "likelihood/logistic.h"

namespace dyad {
namespace {

/// Lower limit of p (1 - p): each row adds at least this information per unit of weight. Sensitivity:
/// docs/constants.md.
constexpr double min_curvature = 1e-6;
/// Variances that are added when the scores come from another model; the prior variances are 4 and 1. Sensitivity:
/// docs/constants.md.
constexpr double intercept_variance_increase = 0.05;
constexpr double slope_variance_increase = 0.5;  // sensitivity: docs/constants.md

}  // namespace

void Calibration::learn(double score, double positive, double weight) {
  if (weight == 0 || !std::isfinite(score)) return;
  const double p = logistic(log_odds(score));
  const double information = std::max(p * (1 - p), min_curvature) * weight;
  // gain = P g for g = (1, score), variance = g'P g.
  const double intercept_gain = intercept_variance_ + covariance_ * score;
  const double slope_gain = covariance_ + slope_variance_ * score;
  const double variance = intercept_gain + slope_gain * score;
  const double denominator = 1 + information * variance;
  intercept_ += intercept_gain * weight * (positive - p) / denominator;
  slope_ = std::max(0.0, slope_ + slope_gain * weight * (positive - p) / denominator);
  const double shrink = information / denominator;
  intercept_variance_ -= shrink * intercept_gain * intercept_gain;
  covariance_ -= shrink * intercept_gain * slope_gain;
  slope_variance_ -= shrink * slope_gain * slope_gain;
}

void Calibration::increase_variances() {
  intercept_variance_ += intercept_variance_increase;
  slope_variance_ += slope_variance_increase;
}

void Calibration::archive(Archive& archive) {
  archive.number("shift", intercept_);
  archive.number("stretch", slope_);
  archive.number("var_shift", intercept_variance_);
  archive.number("covariance", covariance_);
  archive.number("var_stretch", slope_variance_);
}

}  // namespace dyad
