#include "likelihood/bernoulli.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "likelihood/logistic.h"

namespace dyad {
namespace {

/// lambda(xi) of the bound log logistic(f) >= log logistic(xi) + (f - xi) / 2 - lambda(xi) (f^2 - xi^2), Jaakkola and
/// Jordan (2000), "Bayesian parameter estimation via variational methods".
double bound_curvature(double xi) {
  // tanh(xi/2) / (4 xi) = 1/8 - xi^2/96 + ...: below the limit, 1/8 has a relative error below 1e-13
  constexpr double series_limit = 1e-6;
  return xi < series_limit ? 0.125 : std::tanh(xi / 2) / (4 * xi);
}

/// Mode m of the posterior of f after a row of the positive class, for the prior N(start, variance) and strength =
/// weight * variance > 4. The mode is the root m >= start of m - start = strength * logistic(-m), computed by
/// bisection. The root is below max(start, 0) + log(1 + strength), because there the right-hand side is less than 1,
/// and the left-hand side exceeds log(5), which is greater than 1.
double posterior_mode(double start, double strength) {
  double low = start;
  double high = std::max(start, 0.0) + std::log1p(strength);
  constexpr int bisection_steps = 64;  // reduce an interval of length 2^10 to 2^-54, below the rounding error of m >= 1
  for (int i = 0; i < bisection_steps; ++i) {
    const double middle = low + (high - low) / 2;
    (middle - start < strength * logistic(-middle) ? low : high) = middle;
  }
  return low;
}

/// kappa = 1 / sqrt(1 + pi variance / 8).
double posterior_scale(double variance) { return 1 / std::sqrt(1 + std::numbers::pi / 8 * variance); }

}  // namespace

double BernoulliLikelihood::posterior_predictor(double mean, double variance) const {
  return posterior_scale(variance) * mean;
}

Likelihood::Expansion BernoulliLikelihood::expand(double y, double f) const {
  const double p = logistic(f);
  const double q = logistic(-f);  // 1 - p without cancellation
  return {-log_logistic(y > 0 ? f : -f), y > 0 ? q : -p, p * q};
}

double BernoulliLikelihood::loss(double y, double f) const { return -log_logistic(y > 0 ? f : -f); }

Likelihood::Update BernoulliLikelihood::update(double y, double mean, double variance, double weight, double) const {
  constexpr double max_newton_strength = 4;  // 1 / max logistic'(f) = 1 / (1/4); see the header
  const double strength = weight * variance;
  if (!(weight > 1 && strength > max_newton_strength)) {
    const double kappa = posterior_scale(variance);
    // logistic(|kappa mean|) and 1 minus it, without cancellation.
    const double odds = std::exp(-std::abs(kappa * mean));
    const double larger = 1 / (1 + odds);
    const double smaller = odds * larger;
    const double p = mean >= 0 ? larger : smaller;
    const double q = mean >= 0 ? smaller : larger;
    // Bounded away from 0, so that the row carries information.
    const double precision = kappa * kappa * std::max(p * q, std::numeric_limits<double>::min());
    const double repetition = weight / (1 + (weight - 1) * precision * variance);
    return {y > 0 ? logistic(-mean) : -logistic(mean), repetition * kappa * (y > 0 ? q : -p), repetition * precision};
  }
  const double sign = y > 0 ? 1 : -1;
  const double start = sign * mean;
  const double mode = posterior_mode(start, strength);
  const double precision = weight * logistic(mode) * logistic(-mode);
  return {sign * logistic(-start), sign * (mode - start) / variance, precision / (1 + precision * variance)};
}

double BernoulliLikelihood::mean(double f) const { return logistic(f); }

double BernoulliLikelihood::constant_score(double mean, double) const { return binary_entropy(mean); }

double BernoulliLikelihood::constant_loss(double mean, double) const { return binary_entropy(mean); }

double BernoulliLikelihood::link(double mean) const { return std::log(mean / (1 - mean)); }

/// Posterior mean under the Jeffreys prior Beta(1/2, 1/2), which adds half a row to each class.
double BernoulliLikelihood::constant_mean(double sum, double weight) const { return (sum + 0.5) / (weight + 1); }

Likelihood::QuadraticBound BernoulliLikelihood::bound(double y, double mean, double variance) const {
  const double xi = std::sqrt(mean * mean + variance);
  const double precision = 2 * bound_curvature(xi);
  return {xi, (y > 0 ? 0.5 : -0.5) / precision, precision};
}

double BernoulliLikelihood::bound_value(double y, double point, double mean, double variance, double) const {
  return log_logistic(point) + ((y > 0 ? mean : -mean) - point) / 2 -
         bound_curvature(point) * (mean * mean + variance - point * point);
}

}  // namespace dyad
