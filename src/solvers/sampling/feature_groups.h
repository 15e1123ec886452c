#pragma once

#include <cstdint>
#include <vector>

#include "data/prior_groups.h"
#include "solvers/sampling/feature_columns.h"

namespace dyad {

/// Prior groups of the sampler: the parameters of the features of a group share a prior distribution. Groups are
/// statistical; see ColourClasses for the partition that allows parallel draws. The last group is for features without
/// rows, unless their group is known; it keeps the initial prior.
struct FeatureGroups {
  std::vector<std::int32_t> group_of;  ///< group of each feature
  Index count = 0;                     ///< number of groups
  std::vector<std::int32_t> merged;    ///< group of the sampler for each group of the PriorGroups

  /// The given groups. All groups with a single feature that occurs are merged into one, because one feature does not
  /// determine a prior. Groups without such features become the last group.
  static FeatureGroups of(const PriorGroups& groups, const FeatureColumns& columns);

  /// Groups of sparse rows without columns, by co-occurrence: features that never share a row belong to one group
  /// (greedy colouring by decreasing number of rows). If there are more than twice as many groups as entries in the
  /// longest row, the features do not form columns, and all features that occur are in one group. `unknown_groups`:
  /// number of groups of unknown features, which become the last group.
  static FeatureGroups discover(const FeatureColumns& columns, Index unknown_groups);

  /// Order of the features for ColourClasses: by group, then by decreasing number of rows, so that the features of a
  /// column share a class.
  [[nodiscard]] std::vector<std::int32_t> colouring_order(const FeatureColumns& columns) const;
};

}  // namespace dyad
