#pragma once

#include <cmath>
#include <limits>
#include <vector>

namespace dyad {

/// Set of at most two different numbers, none of which is NaN.
class TwoValues {
 public:
  /// Adds a number. Returns false, without effect, if the set already contains two others.
  bool add(double number) {
    // Bitwise or: one branch instead of two, since the order of the two values cannot be predicted.
    if (static_cast<int>(number == first_) | static_cast<int>(number == second_)) return true;
    if (is_full()) return false;
    (std::isnan(first_) ? first_ : second_) = number;
    return true;
  }

  [[nodiscard]] bool is_full() const { return !std::isnan(second_); }
  [[nodiscard]] double first() const { return first_; }    ///< NaN if not set
  [[nodiscard]] double second() const { return second_; }  ///< NaN if not set
  [[nodiscard]] std::vector<double> all() const {
    if (is_full()) return {first_, second_};
    return std::isnan(first_) ? std::vector<double>() : std::vector<double>{first_};
  }

 private:
  double first_ = std::numeric_limits<double>::quiet_NaN();
  double second_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace dyad
