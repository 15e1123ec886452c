#pragma once

#include <algorithm>
#include <stdexcept>

#include "base/archive.h"

namespace dyad {

/// Running estimate of the noise variance s2 from the residuals r of a filter: a moving average of r^2 - v, where v is
/// the variance that the parameters contribute. With q unknowns per row and t rows, the rate is 1 / (min(t, 5q) + q).
/// If a second, faster moving average is much smaller, it replaces the slow one. This occurs if the filter converges to
/// an exact fit of data without noise. Not thread-safe.
class NoiseTracker {
 public:
  NoiseTracker() = default;
  /// `start`: initial variance. `unknowns`: number q of parameters that a row updates. `rows`: number of rows from
  /// which `start` was estimated.
  NoiseTracker(double start, double unknowns, double rows = 0)
      : value_(start), recent_(start), unknowns_(unknowns), rows_(rows) {}

  [[nodiscard]] double value() const { return value_; }

  /// Adds a residual. `squared`: r^2. `explained`: v.
  void observe(double squared, double explained) {
    const double excess = std::min(squared, max_squared_deviation * (value_ + explained)) - explained;
    rows_ += 1;
    const double rate = 1 / (std::min(rows_, slow_window_per_unknown * unknowns_) + unknowns_);
    value_ = std::max(value_ + (excess - value_) * rate, value_ * (1 - max_relative_decrease * rate));
    recent_ += (excess - recent_) * std::min(1.0, fast_rate_factor / unknowns_);
    rows_since_drop_ += 1;
    if (recent_ < value_ / drop_ratio && fast_rate_factor * rows_since_drop_ > unknowns_) {
      value_ = recent_ = std::max(recent_, value_ / max_drop_factor);
      rows_ = rows_since_drop_ = 0;
    }
    value_ = std::max(value_, min_variance);
  }

  /// Restarts from this variance, without rows.
  void restart(double start) { *this = NoiseTracker(start, unknowns_); }

  void archive(Archive& archive) {
    archive.number("value", value_);
    archive.number("recent", recent_);
    archive.number("unknowns", unknowns_);
    archive.number("rows", rows_);
    archive.number("since_fall", rows_since_drop_);
    if (!(value_ >= 0 && unknowns_ >= 1))
      throw std::runtime_error("the training state has a noise variance below 0 or fewer than 1 unknowns per row");
  }

 private:
  /// r^2 is limited to that of five standard deviations of the prediction error, sqrt(s2 + v). Sensitivity:
  /// docs/constants.md.
  static constexpr double max_squared_deviation = 25;
  /// Rows in the window of the slow average, per unknown.
  static constexpr double slow_window_per_unknown = 5;
  /// The slow average decreases by at most this multiple of its rate, relative to its value. This keeps it positive.
  /// Sensitivity: docs/constants.md.
  static constexpr double max_relative_decrease = 2;
  /// The fast average has the rate 4 / unknowns, which is a window of unknowns / 4 rows. Drops are at least one such
  /// window apart. Sensitivity: docs/constants.md.
  static constexpr double fast_rate_factor = 4;
  /// The fast average replaces the slow one if it is smaller by this factor. Sensitivity: docs/constants.md.
  static constexpr double drop_ratio = 2;
  /// One drop divides the variance by at most this factor. Sensitivity: docs/constants.md.
  static constexpr double max_drop_factor = 4;
  /// (1e-15)^2: residuals of targets of size 1 at the rounding error of double precision.
  static constexpr double min_variance = 1e-30;

  double value_ = 1;            ///< slow average: the estimate
  double recent_ = 1;           ///< fast average
  double unknowns_ = 100;       ///< parameters that a row updates
  double rows_ = 0;             ///< rows since the start or the last drop, plus those of the initial estimate
  double rows_since_drop_ = 0;  ///< rows since the last drop
};

}  // namespace dyad
