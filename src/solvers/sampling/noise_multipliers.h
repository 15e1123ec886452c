#pragma once

#include <cstdint>
#include <vector>

#include "solvers/sampling/feature_groups.h"

namespace dyad {

/// Noise precisions of the features for regression. The noise precision of row i is alpha weight_i prod_j s_j over the
/// features j of the row, with s_j ~ Gamma(nu_g/2, nu_g/2) for features of group g: given all others, the noise of the
/// rows of a feature is Student-t distributed with a common scale. The prior of nu_g - 1 is exponential with mean 100.
class NoiseMultipliers {
 public:
  NoiseMultipliers() = default;
  NoiseMultipliers(Index features, Index groups);

  [[nodiscard]] double& multiplier(Index j) { return multipliers_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] double multiplier(Index j) const { return multipliers_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] double& shape(Index group) { return shapes_[static_cast<std::size_t>(group)]; }
  [[nodiscard]] double shape(Index group) const { return shapes_[static_cast<std::size_t>(group)]; }

  /// Draws the multiplier s_j of a feature from Gamma((nu + n)/2, (nu + S)/2), where n is the sum of the weights of its
  /// rows and S the sum of their weighted squared residuals, in units of the noise without s_j. Returns the ratio of
  /// the new multiplier to the old one.
  double draw_multiplier(Index j, Index group, double weight, double squared_residuals, std::uint64_t seed,
                         Index sweep);

  /// Draws nu_g of all groups by Metropolis steps on log nu. `has_noise`: features with a multiplier.
  void draw_shapes(const FeatureGroups& groups, const std::vector<bool>& has_noise, std::uint64_t seed, Index sweep);

 private:
  std::vector<double> multipliers_;  ///< s_j
  std::vector<double> shapes_;       ///< nu_g
};

}  // namespace dyad
