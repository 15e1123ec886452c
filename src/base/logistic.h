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

}  // namespace dyad
