#include "training/state/calibration.h"

#include <algorithm>
#include <cmath>

#include "likelihood/logistic.h"

namespace dyad {

void Calibration::learn(double score, double positive, double weight) {
  if (weight == 0 || !std::isfinite(score)) return;
  const double p = logistic(log_odds(score));
  const double information = std::max(p * (1 - p), 1e-6) * weight;
  // P g for g = (1, score), and what the row adds to the certainty of its own log-odds.
  const double gain_shift = var_shift_ + covariance_ * score;
  const double gain_stretch = covariance_ + var_stretch_ * score;
  const double variance = gain_shift + gain_stretch * score;
  const double denominator = 1 + information * variance;
  shift_ += gain_shift * weight * (positive - p) / denominator;
  stretch_ = std::max(0.0, stretch_ + gain_stretch * weight * (positive - p) / denominator);
  const double shrink = information / denominator;
  var_shift_ -= shrink * gain_shift * gain_shift;
  covariance_ -= shrink * gain_shift * gain_stretch;
  var_stretch_ -= shrink * gain_stretch * gain_stretch;
}

void Calibration::loosen() {
  var_shift_ += 0.05;
  var_stretch_ += 0.5;
}

void Calibration::archive(Archive& archive) {
  archive.number("shift", shift_);
  archive.number("stretch", stretch_);
  archive.number("var_shift", var_shift_);
  archive.number("covariance", covariance_);
  archive.number("var_stretch", var_stretch_);
}

}  // namespace dyad
