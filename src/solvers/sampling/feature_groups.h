#pragma once

#include <cstdint>
#include <vector>

#include "solvers/sampling/feature_columns.h"

namespace dyad {

/// Prior group of each feature: the parameters of the features of a group share a prior distribution. Groups are
/// statistical, for example the columns of a table. See ColourClasses for the partition that allows parallel draws.
struct FeatureGroups {
  static constexpr std::int32_t none = -1;  ///< no group, for features without rows; their parameters are 0

  std::vector<std::int32_t> group_of;
  Index count = 0;

  /// All features in one group.
  static FeatureGroups single(Index dim);
};

/// Groups of sparse rows without columns, by co-occurrence: features that never share a row belong to one group (greedy
/// colouring by decreasing number of rows). If there are more than twice as many groups as entries in the longest row,
/// the features do not form columns, and the result is a single group. Features without rows have no group.
FeatureGroups discover_groups(const FeatureColumns& columns);

/// Merges all groups with a single feature that occurs into one group, because one feature does not determine a
/// prior.
FeatureGroups merge_single_features(const FeatureGroups& groups, const FeatureColumns& columns);

/// Whether no row contains two features of the group, for each group.
std::vector<bool> find_exclusive_groups(const FeatureGroups& groups, const FeatureColumns& columns);

}  // namespace dyad
