#include "solvers/sampling/feature_groups.h"

#include <algorithm>

#include "solvers/sampling/colour_classes.h"

namespace dyad {
namespace {

/// Largest ratio of discovered groups to entries of the longest row. Rows of a table with missing cells have fewer
/// entries than columns; a bag of words needs many more classes than words per row. Sensitivity: docs/constants.md.
constexpr std::size_t max_groups_per_entry = 2;

}  // namespace

FeatureGroups FeatureGroups::single(Index dim) {
  return {std::vector<std::int32_t>(static_cast<std::size_t>(dim), 0), 1};
}

FeatureGroups discover_groups(const FeatureColumns& columns) {
  FeatureGroups groups = FeatureGroups::single(columns.dim());
  std::vector<std::size_t> entries(static_cast<std::size_t>(columns.row_count()));
  for (Index j = 0; j < columns.dim(); ++j)
    for (const std::int32_t row : columns.column(j).rows) ++entries[static_cast<std::size_t>(row)];
  const ColourClasses colours(columns, features_by_count(columns));
  const std::size_t longest = entries.empty() ? 0 : *std::max_element(entries.begin(), entries.end());
  if (colours.classes().size() > max_groups_per_entry * longest) return groups;
  groups.count = std::max<Index>(1, static_cast<Index>(colours.classes().size()));
  std::fill(groups.group_of.begin(), groups.group_of.end(), FeatureGroups::none);
  for (std::size_t group = 0; group < colours.classes().size(); ++group)
    for (const std::int32_t feature : colours.classes()[group])
      groups.group_of[static_cast<std::size_t>(feature)] = static_cast<std::int32_t>(group);
  return groups;
}

FeatureGroups merge_single_features(const FeatureGroups& groups, const FeatureColumns& columns) {
  std::vector<Index> sizes(static_cast<std::size_t>(groups.count));
  for (Index j = 0; j < columns.dim(); ++j)
    if (columns.column(j).count() > 0) ++sizes[static_cast<std::size_t>(groups.group_of[static_cast<std::size_t>(j)])];
  std::vector<std::int32_t> new_group(sizes.size());
  std::int32_t count = 0;
  std::int32_t shared = -1;
  for (std::size_t group = 0; group < sizes.size(); ++group) {
    if (sizes[group] > 1) {
      new_group[group] = count++;
      continue;
    }
    if (shared < 0) shared = count++;
    new_group[group] = shared;
  }
  FeatureGroups merged{groups.group_of, count};
  for (std::int32_t& group : merged.group_of)
    if (group != FeatureGroups::none) group = new_group[static_cast<std::size_t>(group)];
  return merged;
}

std::vector<bool> find_exclusive_groups(const FeatureGroups& groups, const FeatureColumns& columns) {
  std::vector<std::vector<std::int32_t>> members(static_cast<std::size_t>(groups.count));
  for (std::size_t j = 0; j < groups.group_of.size(); ++j)
    if (groups.group_of[j] != FeatureGroups::none)
      members[static_cast<std::size_t>(groups.group_of[j])].push_back(static_cast<std::int32_t>(j));
  std::vector<std::int32_t> last_group(static_cast<std::size_t>(columns.row_count()), -1);
  std::vector<bool> are_exclusive(members.size(), true);
  for (std::size_t group = 0; group < members.size(); ++group)
    for (const std::int32_t feature : members[group])
      for (const std::int32_t row : columns.column(feature).rows) {
        std::int32_t& last = last_group[static_cast<std::size_t>(row)];
        if (last == static_cast<std::int32_t>(group)) are_exclusive[group] = false;
        last = static_cast<std::int32_t>(group);
      }
  return are_exclusive;
}

}  // namespace dyad
