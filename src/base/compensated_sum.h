#pragma once

#include <cmath>

namespace dyad {

/// Compensated sum (Neumaier, 1974): the rounding errors of the additions are accumulated in a second number. To first
/// order, the error of value() does not depend on the number of terms. An overflowing sum stays infinite.
class CompensatedSum {
 public:
  CompensatedSum& operator+=(double term) {
    const double next = sum_ + term;
    correction_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
    return *this;
  }

  [[nodiscard]] double value() const { return std::isfinite(sum_) ? sum_ + correction_ : sum_; }

 private:
  double sum_ = 0;
  double correction_ = 0;  ///< sum of the rounding errors
};

}  // namespace dyad
