#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/archive.h"
#include "solvers/kalman/log_noise.h"

namespace dyad {

/// Noise variance with a multiplier per feature: that of a row is s2 exp(sum_j l_j) over its features j, with
/// l_j ~ N(0, log_variance). Rows with a feature that no earlier row has share another multiplier. It is estimated
/// beside the filter, which uses one noise variance for all rows, and its predictive likelihood is compared with that
/// of the filter. The estimate is an extended Kalman filter for log s2 and all l_j, as LogNoiseTracker. The owner
/// stores l_j and its variance for each feature. Not thread-safe.
class FeatureNoise {
 public:
  /// Prior variance of l_j. Sensitivity: docs/constants.md.
  static constexpr double log_variance = 0.0625;

  FeatureNoise() = default;
  /// `start`: initial s2. `unknowns`: number of parameters that a row updates.
  FeatureNoise(double start, double unknowns) : value_(start), unknowns_(unknowns), log_variance_(2 / unknowns) {}

  /// Noise variance of a row with the sum `log_multiplier` of l_j. `has_new`: the row has a feature without data.
  [[nodiscard]] double value(double log_multiplier, bool has_new) const {
    const double sum = log_multiplier + (has_new ? new_multiplier_ : 0);
    return value_ * std::exp(std::clamp(sum, -max_log_multiplier, max_log_multiplier));
  }
  /// Whether the predictive likelihood of the rows so far is larger than with one noise variance, by more than two
  /// standard errors of the sum of the differences.
  [[nodiscard]] bool is_better() const { return advantage_ > 2 * std::sqrt(squared_advantage_); }

  /// Changes of l_j with variance P: l_j += P mean, P -= P^2 precision.
  struct Step {
    double mean = 0;
    double precision = 0;
  };
  /// Adds a residual. `squared`: r^2. `explained`: variance v of the prediction. `log_multiplier`, `uncertainty`: sums
  /// of l_j and of their variances. `has_new`: as in value(). `common`: noise variance of the filter.
  Step observe(double squared, double explained, double log_multiplier, double uncertainty, bool has_new,
               double common) {
    const double noise = value(log_multiplier, has_new);
    const double total = noise + explained;
    const double common_total = common + explained;
    const double ratio = std::min(squared / total, max_squared_deviation);
    if (++rows_since_comparison_ >= comparison_interval_rows) {
      rows_since_comparison_ = 0;
      const double advantage = (std::log(common_total / total) + squared / common_total - squared / total) / 2;
      advantage_ += advantage;
      squared_advantage_ += advantage * advantage;
    }
    const double omega = noise / total;
    const double score = omega / 2 * (ratio - expected_squared_deviation);
    const double information = omega * omega / 2;
    const double inverse = 1 / (1 + information * (log_variance_ + uncertainty + (has_new ? new_variance_ : 0)));
    const Step step{score * inverse, information * inverse};
    value_ = std::max(value_ * approximate_exp(std::clamp(log_variance_ * step.mean, -1.0, 1.0)), min_variance);
    log_variance_ =
        std::max(log_variance_ - log_variance_ * log_variance_ * step.precision, 2 / (max_windows * unknowns_));
    if (has_new) {
      new_multiplier_ += new_variance_ * step.mean;
      new_variance_ -= new_variance_ * new_variance_ * step.precision;
    }
    return step;
  }

  void archive(Archive& archive) {
    archive.number("value", value_);
    archive.number("unknowns", unknowns_);
    archive.number("log_variance", log_variance_);
    archive.number("new_multiplier", new_multiplier_);
    archive.number("new_variance", new_variance_);
    archive.number("rows_since_comparison", rows_since_comparison_);
    archive.number("advantage", advantage_);
    archive.number("squared_advantage", squared_advantage_);
    if (!(value_ >= 0 && unknowns_ >= 1 && log_variance_ > 0 && new_variance_ >= 0 && squared_advantage_ >= 0))
      throw std::runtime_error("the training state has an invalid estimate of the noise per feature");
  }

 private:
  /// r^2 is limited to that of 2.5 standard deviations, so that the estimate is the variance of the central part if the
  /// residuals have heavy tails. Sensitivity: docs/constants.md.
  static constexpr double max_squared_deviation = 6.25;
  /// E min(z^2, 6.25) for z ~ N(0, 1).
  static constexpr double expected_squared_deviation = 0.97755;
  /// Noise variances of rows differ from s2 by at most exp(4) = 55. Sensitivity: docs/constants.md.
  static constexpr double max_log_multiplier = 4;
  /// The likelihoods of one of this number of rows are compared, because logarithms take time.
  static constexpr double comparison_interval_rows = 4;
  static constexpr double max_windows = 6;  ///< as LogNoiseTracker
  static constexpr double min_variance = 1e-30;

  double value_ = 1;
  double unknowns_ = 100;
  double log_variance_ = 0.02;
  double new_multiplier_ = 0;           ///< logarithm of the multiplier of rows with a feature without data
  double new_variance_ = log_variance;  ///< its variance
  double rows_since_comparison_ = 0;
  double advantage_ = 0;          ///< sum over the rows of the difference of the log-likelihoods
  double squared_advantage_ = 0;  ///< sum of its squares
};

}  // namespace dyad
