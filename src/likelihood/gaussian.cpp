#include "likelihood/gaussian.h"

#include <cmath>
#include <numbers>

namespace dyad {

Likelihood::Expansion GaussianLikelihood::expand(double y, double f) const {
  if (is_censored(y, f)) return {};
  const double residual = y - f;
  return {residual * residual / 2, residual, 1};
}

Likelihood::Update GaussianLikelihood::update(double y, double mean, double variance, double weight,
                                              double noise_variance) const {
  if (is_censored(y, mean)) return {};
  const double residual = y - mean;
  const double total = noise_variance / weight + variance;
  return {residual, residual / total, 1 / total};
}

double GaussianLikelihood::loss(double y, double f) const { return is_censored(y, f) ? 0 : (y - f) * (y - f) / 2; }

double GaussianLikelihood::score(double observed, double mean) const { return (observed - mean) * (observed - mean); }

double GaussianLikelihood::metric(double mean_score) const { return std::sqrt(mean_score); }

double GaussianLikelihood::predictor_variance(double target_variance) const {
  return target_variance > 0 ? target_variance : 1;
}

/// E (y - f)^2 = (y - mean)^2 + variance, so that the bound is exact with target y. A censored row has the mean as its
/// target, so that its gradient is 0. The variational parameter is the target.
Likelihood::QuadraticBound GaussianLikelihood::bound(double y, double mean, double) const {
  const double target = is_censored(y, mean) ? mean : y;
  return {target, target, 1};
}

double GaussianLikelihood::bound_value(double y, double point, double mean, double variance,
                                       double noise_precision) const {
  const double residual = (needs_bound_points() ? point : y) - mean;
  return (std::log(noise_precision / (2 * std::numbers::pi)) - noise_precision * (residual * residual + variance)) / 2;
}

}  // namespace dyad
