#include "likelihood/bernoulli.h"

#include <cmath>

#include "base/logistic.h"

namespace dyad {
namespace {

/// lambda(xi) of the bound log logistic(f) >= log logistic(xi) + (f - xi) / 2 - lambda(xi) (f^2 - xi^2), Jaakkola and
/// Jordan (2000), "Bayesian parameter estimation via variational methods".
double bound_curvature(double xi) {
  constexpr double series_limit = 1e-6;  // tanh(xi/2)/(4 xi) = 1/8 - xi^2/96 + ..., which is 1/8 to rounding here
  return xi < series_limit ? 0.125 : std::tanh(xi / 2) / (4 * xi);
}

}  // namespace

Likelihood::Expansion BernoulliLikelihood::expand(double y, double f) const {
  const double p = logistic(f);
  return {-log_logistic(y > 0 ? f : -f), (y > 0 ? 1 : 0) - p, p * (1 - p)};
}

double BernoulliLikelihood::loss(double y, double f) const { return -log_logistic(y > 0 ? f : -f); }

double BernoulliLikelihood::mean(double f) const { return logistic(f); }

double BernoulliLikelihood::constant_score(double mean, double) const { return entropy(mean); }

double BernoulliLikelihood::constant_loss(double mean, double) const { return entropy(mean); }

double BernoulliLikelihood::link(double mean) const { return std::log(mean / (1 - mean)); }

/// Half a row is added to each class (Jeffreys prior).
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
