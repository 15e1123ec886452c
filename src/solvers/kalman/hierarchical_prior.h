#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include <dyad/rows.h>

#include "base/archive.h"

namespace dyad {

/// Groups of features that share a prior distribution, for example the categories of a column.
struct FilterGroups {
  Index count = 1;
  /// Per group: whether its parameters have a common mean, which is estimated. Empty: none.
  std::vector<bool> have_mean;
  /// Whether every row contains exactly one feature of each group with a mean, with value 1, unless the feature is
  /// unknown. The means can then be absorbed into the intercept and the weights of the other features.
  bool one_feature_per_row = false;

  [[nodiscard]] bool has_mean(Index group) const {
    return !have_mean.empty() && have_mean[static_cast<std::size_t>(group)];
  }
  [[nodiscard]] bool has_any_mean() const {
    return std::find(have_mean.begin(), have_mean.end(), true) != have_mean.end();
  }
};

/// Sums over the features of each group from which HierarchicalPrior estimates variances. They add over features.
struct PriorSums {
  std::vector<double> squares;  ///< sum of the squared deviations of the posterior means from the prior means
  std::vector<double> counts;   ///< sum of 1 - P / tau: number of parameters that the rows determine

  explicit PriorSums(std::size_t size) : squares(size), counts(size) {}
  void add(const PriorSums& other);
};

/// Prior variances tau of the parameters, for features of scale 1: one for each group and place. Places 0 to rank - 1
/// are the factors, followed by the weight and the coefficient of the square.
///
/// update() re-estimates them by the fixed-point iteration of the evidence (MacKay 1992, "Bayesian interpolation"),
/// tau = sum deviation^2 / sum (1 - P / tau), with shrinkage over three levels: all groups, the group, the place in the
/// group. Each level adds `pseudo_count` parameters with the variance of the level above. The first level has the
/// initial variances. Not thread-safe.
class HierarchicalPrior {
 public:
  HierarchicalPrior() = default;
  /// All groups start with these variances.
  HierarchicalPrior(Index groups, Index rank, double factors, double weights, double squares);

  [[nodiscard]] Index places() const { return rank_ + 2; }
  [[nodiscard]] Index weight_place() const { return rank_; }
  [[nodiscard]] Index square_place() const { return rank_ + 1; }
  [[nodiscard]] Index group_count() const { return static_cast<Index>(variances_.size()) / places(); }
  /// The variances of a group, by place.
  [[nodiscard]] std::span<const double> variances(Index group) const {
    return std::span(variances_)
        .subspan(static_cast<std::size_t>(group * places()), static_cast<std::size_t>(places()));
  }
  /// Initial variance of a place, for all groups.
  [[nodiscard]] double initial(Index place) const {
    return initial_[static_cast<std::size_t>(place < rank_ ? 0 : place - rank_ + 1)];
  }
  [[nodiscard]] PriorSums zero_sums() const { return PriorSums(variances_.size()); }

  void update(const PriorSums& sums);

  void archive(Archive& archive);

 private:
  Index rank_ = 0;
  std::vector<double> initial_;    ///< of factors, weights and squares
  std::vector<double> variances_;  ///< group-major
};

}  // namespace dyad
