#pragma once

#include <algorithm>
#include <stdexcept>

#include "base/archive.h"

namespace dyad {

/// The variance of what no parameter explains, followed through the innovations. One long average is steady; a short
/// one beside it notices when the long one has been overtaken, as on the way to a model without noise.
class NoiseTracker {
 public:
  NoiseTracker() = default;
  /// `unknowns`: how many numbers a row touches, which is how fast the model itself can change. `rows`: that the start
  /// was found from.
  NoiseTracker(double start, double unknowns, double rows = 0)
      : value_(start), recent_(start), unknowns_(unknowns), rows_(rows) {}

  [[nodiscard]] double value() const { return value_; }

  /// A residual r with what the parameters' own variance explains of r^2.
  void observe(double squared, double explained) {
    constexpr double far = 25;  // squares beyond five standard deviations count as that
    const double excess = std::min(squared, far * (value_ + explained)) - explained;
    rows_ += 1;
    const double rate = 1 / (std::min(rows_, 5 * unknowns_) + unknowns_);
    value_ = std::max(value_ + (excess - value_) * rate, value_ * (1 - 2 * rate));
    recent_ += (excess - recent_) * std::min(1.0, 4 / unknowns_);
    since_fall_ += 1;
    if (recent_ < value_ / 2 && 4 * since_fall_ > unknowns_) {
      value_ = recent_ = std::max(recent_, value_ / 4);
      rows_ = since_fall_ = 0;
    }
    value_ = std::max(value_, least);
  }

  /// The data has become another: everything is open again.
  void start_again(double start) { *this = NoiseTracker(start, unknowns_); }

  void archive(Archive& archive) {
    archive.number("value", value_);
    archive.number("recent", recent_);
    archive.number("unknowns", unknowns_);
    archive.number("rows", rows_);
    archive.number("since_fall", since_fall_);
    if (!(value_ >= 0 && unknowns_ >= 1)) throw std::runtime_error("the training state has a noise that cannot be");
  }

 private:
  static constexpr double least = 1e-30;

  double value_ = 1;
  double recent_ = 1;
  double unknowns_ = 100;
  double rows_ = 0;
  double since_fall_ = 0;
};

}  // namespace dyad
