#pragma once

#include <cmath>

namespace dyad {

/// The probability of log-odds, which no exponent overflows.
inline double logistic(double log_odds) {
  return log_odds >= 0 ? 1 / (1 + std::exp(-log_odds)) : std::exp(log_odds) / (1 + std::exp(log_odds));
}

/// Its logarithm: minus the loss of a prediction by this much on the right side.
inline double log_logistic(double log_odds) {
  return log_odds > 0 ? -std::log1p(std::exp(-log_odds)) : log_odds - std::log1p(std::exp(log_odds));
}

/// The mean log-loss of the best constant where this share of the rows is positive.
inline double entropy(double share) {
  return share <= 0 || share >= 1 ? 0 : -share * std::log(share) - (1 - share) * std::log1p(-share);
}

}  // namespace dyad
