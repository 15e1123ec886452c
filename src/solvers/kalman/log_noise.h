#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/archive.h"

namespace dyad {

/// exp(x) for |x| <= 1, with a relative error below 0.2%: the Pade approximant of order (2, 2).
inline double approximate_exp(double x) {
  const double even = 1 + x * x / 12;
  return (even + x / 2) / (even - x / 2);
}

/// Estimate of the noise variance s2 by an extended Kalman filter for log s2. A row with squared residual r^2, variance
/// v of the prediction, S = s2 + v and omega = s2/S has the score (omega/2)(r^2/S - 1) and the expected information
/// omega^2/2. With the variance Pl of log s2, the update is
///   log s2 += Pl score / (1 + Pl omega^2/2),   1/Pl += omega^2/2,
/// and Pl has a lower bound, so that the estimate follows slow changes. Not thread-safe.
class LogNoiseTracker {
 public:
  LogNoiseTracker() = default;
  /// `start`: initial variance s2. `unknowns`: number q of parameters that a row updates.
  LogNoiseTracker(double start, double unknowns) : value_(start), unknowns_(unknowns), log_variance_(2 / unknowns) {}

  [[nodiscard]] double value() const { return value_; }

  /// Adds a residual. `squared`: r^2. `explained`: v.
  void observe(double squared, double explained) {
    const double inverse_total = 1 / (value_ + explained);
    const double omega = value_ * inverse_total;
    const double score = omega / 2 * (std::min(squared * inverse_total, max_squared_deviation) - 1);
    const double information = omega * omega / 2;
    const double posterior_variance = log_variance_ / (1 + log_variance_ * information);
    const double change = std::clamp(posterior_variance * score, -1.0, 1.0);
    value_ = std::max(value_ * approximate_exp(change), min_variance);
    log_variance_ = std::max(posterior_variance, 2 / (max_windows * unknowns_));
  }

  void restart(double start) { *this = LogNoiseTracker(start, unknowns_); }

  void archive(Archive& archive) {
    archive.number("value", value_);
    archive.number("unknowns", unknowns_);
    archive.number("log_variance", log_variance_);
    if (!(value_ >= 0 && unknowns_ >= 1 && log_variance_ > 0))
      throw std::runtime_error("the training state has an invalid estimate of the noise variance");
  }

 private:
  /// r^2 is limited to that of five standard deviations. Sensitivity: docs/constants.md.
  static constexpr double max_squared_deviation = 25;
  /// The lower bound of Pl is that of an average over this multiple of q rows. Sensitivity: docs/constants.md.
  static constexpr double max_windows = 6;
  /// (1e-15)^2: residuals of targets of size 1 at the rounding error of double precision.
  static constexpr double min_variance = 1e-30;

  double value_ = 1;
  double unknowns_ = 100;
  double log_variance_ = 0.02;
};

}  // namespace dyad
