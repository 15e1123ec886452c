#pragma once

namespace dyad {

/// A target at an end of its range may stand for anything beyond: a prediction there can be right.
inline bool says_nothing(double target, double prediction, double low, double high) {
  return (target >= high && prediction >= target) || (target <= low && prediction <= target);
}

}  // namespace dyad
