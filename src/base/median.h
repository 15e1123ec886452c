#pragma once

#include <algorithm>
#include <vector>

namespace dyad {

/// Median of `numbers`, which must not be empty. For an even count, returns the upper of the two middle numbers.
/// Reorders `numbers`.
inline double median(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace dyad
