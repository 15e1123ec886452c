#pragma once

#include <algorithm>
#include <vector>

namespace dyad {

/// The upper one of two in the middle. Changes the order of the numbers, of which there is at least one.
inline double median(std::vector<double>& numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace dyad
