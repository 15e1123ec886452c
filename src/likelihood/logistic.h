#pragma once

#include <cmath>

namespace dyad {

/// Logistic function 1 / (1 + exp(-log_odds)), evaluated without overflow.
inline double logistic(double log_odds) {
  return log_odds >= 0 ? 1 / (1 + std::exp(-log_odds)) : std::exp(log_odds) / (1 + std::exp(log_odds));
}

/// log(logistic(log_odds)), evaluated without overflow or cancellation. The log-loss of a prediction f for a target y
/// in
/// {-1, 1} is -log_logistic(y f).
inline double log_logistic(double log_odds) {
  return log_odds > 0 ? -std::log1p(std::exp(-log_odds)) : log_odds - std::log1p(std::exp(log_odds));
}

/// Entropy of a Bernoulli variable with probability p, in nats: -p log p - (1 - p) log(1 - p). It is the mean log-loss
/// of the best constant prediction if the fraction p of the rows is positive.
inline double binary_entropy(double p) { return p <= 0 || p >= 1 ? 0 : -p * std::log(p) - (1 - p) * std::log1p(-p); }

}  // namespace dyad
