#pragma once

#include <cmath>

namespace dyad {

/// A sum that carries along what rounding has cut off (Neumaier), so that its error does not grow with the number of
/// terms.
class CompensatedSum {
 public:
  CompensatedSum& operator+=(double term) {
    const double next = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - next) + term : (term - next) + sum_;
    sum_ = next;
    return *this;
  }

  [[nodiscard]] double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace dyad
