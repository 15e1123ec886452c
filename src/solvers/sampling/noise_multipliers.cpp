#include "solvers/sampling/noise_multipliers.h"

#include <cmath>

#include "solvers/sampling/random_draws.h"

namespace dyad {
namespace {

/// Initial nu: s_j has a standard deviation of 1/2. Forgotten within the burn-in.
constexpr double initial_shape = 8;
/// Lower bound of nu. The noise of a feature with nu <= 1 has a Student-t distribution without a mean.
constexpr double min_shape = 1;
/// Mean of the exponential prior of nu - 1. At nu = 100, s_j varies by 14%, little more than not at all.
constexpr double shape_prior_mean = 100;
/// Steps per sweep and standard deviation of a step of log nu. They affect the mixing only.
constexpr int metropolis_steps = 5;
constexpr double metropolis_step_deviation = 0.2;

}  // namespace

NoiseMultipliers::NoiseMultipliers(Index features, Index groups)
    : multipliers_(static_cast<std::size_t>(features), 1.0), shapes_(static_cast<std::size_t>(groups), initial_shape) {}

double NoiseMultipliers::draw_multiplier(Index j, Index group, double weight, double squared_residuals,
                                         std::uint64_t seed, Index sweep) {
  Random random = draw_random(seed, sweep, DrawPurpose::feature_noise, j);
  const double nu = shape(group);
  const double drawn = draw_gamma(random, (nu + weight) / 2) / ((nu + squared_residuals) / 2);
  const double ratio = drawn / multiplier(j);
  multiplier(j) = drawn;
  return ratio;
}

void NoiseMultipliers::draw_shapes(const FeatureGroups& groups, const std::vector<bool>& has_noise, std::uint64_t seed,
                                   Index sweep) {
  std::vector<double> counts(shapes_.size());
  std::vector<double> sums(shapes_.size());
  std::vector<double> log_sums(shapes_.size());
  for (std::size_t j = 0; j < has_noise.size(); ++j) {
    if (!has_noise[j]) continue;
    const auto group = static_cast<std::size_t>(groups.group_of[j]);
    counts[group] += 1;
    sums[group] += multipliers_[j];
    log_sums[group] += std::log(multipliers_[j]);
  }
  for (std::size_t group = 0; group < shapes_.size(); ++group) {
    Random random = draw_random(seed, sweep, DrawPurpose::noise_shape, static_cast<Index>(group));
    // Log density of log nu.
    const auto log_density = [&](double nu) {
      const double half = nu / 2;
      return counts[group] * (half * std::log(half) - std::lgamma(half)) + (half - 1) * log_sums[group] -
             half * sums[group] - nu / shape_prior_mean + std::log(nu);
    };
    for (int step = 0; step < metropolis_steps; ++step) {
      const double proposed = shapes_[group] * std::exp(metropolis_step_deviation * random.normal());
      if (proposed < min_shape) continue;
      if (std::log(random.uniform()) < log_density(proposed) - log_density(shapes_[group])) shapes_[group] = proposed;
    }
  }
}

}  // namespace dyad
