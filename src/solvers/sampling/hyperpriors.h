#pragma once

#include <cstdint>
#include <vector>

#include "solvers/sampling/feature_groups.h"
#include "solvers/sampling/sampler_state.h"

namespace dyad {

/// Prior N(mean, 1/precision) of the parameters of each group and place. Its conjugate hyperprior is
/// precision ~ Gamma(1/2, r/2), mean ~ N(0, 1/precision), where r is the square of the initial standard deviation of
/// the place.
class Hyperpriors {
 public:
  /// `deviations`: initial standard deviation of each place.
  Hyperpriors(Index groups, std::vector<double> deviations);

  [[nodiscard]] Index places() const { return static_cast<Index>(deviations_.size()); }
  [[nodiscard]] Index groups() const { return static_cast<Index>(means_.size()) / places(); }
  /// Means and precisions of a group, by place.
  [[nodiscard]] double* means(Index group) { return means_.data() + group * places(); }
  [[nodiscard]] const double* means(Index group) const { return means_.data() + group * places(); }
  [[nodiscard]] double* precisions(Index group) { return precisions_.data() + group * places(); }
  [[nodiscard]] const double* precisions(Index group) const { return precisions_.data() + group * places(); }
  [[nodiscard]] double deviation(Index place) const { return deviations_[static_cast<std::size_t>(place)]; }

  /// Draws means and precisions given the parameters of the features with `is_drawn`, from
  /// precision ~ Gamma((n + 2)/2, (r + mean^2 + sum (theta - mean)^2)/2), mean ~ N(sum theta/(n + 1), 1/((n + 1)
  /// precision)). Groups and places without parameters stay constant. `has_square`: features whose square has a
  /// coefficient.
  void draw(const FeatureParameters& parameters, const FeatureGroups& groups, const std::vector<bool>& is_drawn,
            const std::vector<bool>& has_square, std::uint64_t seed, Index sweep);

 private:
  std::vector<double> deviations_;
  std::vector<double> means_;  ///< group-major
  std::vector<double> precisions_;
};

}  // namespace dyad
