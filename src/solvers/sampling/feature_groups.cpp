#include "solvers/sampling/feature_groups.h"

#include <algorithm>
#include <string>

#include "solvers/sampling/colour_classes.h"
#include "solvers/sampling/sampler_state.h"

namespace dyad {
namespace {

/// Largest ratio of discovered groups to entries of the longest row. Rows of a table with missing cells have fewer
/// entries than columns; a bag of words needs many more classes than words per row. Sensitivity: docs/constants.md.
constexpr std::size_t max_groups_per_entry = 2;

}  // namespace

FeatureGroups FeatureGroups::of(const PriorGroups& groups, const FeatureColumns& columns) {
  std::vector<Index> sizes(as_size(groups.count()));
  for (Index j = 0; j < columns.dim(); ++j)
    if (columns.column(j).count() > 0) ++sizes[as_size(groups.group_of(j))];
  FeatureGroups result;
  constexpr std::int32_t none = -1;
  std::int32_t shared = none;
  std::int32_t next = 0;
  for (const Index size : sizes) {
    if (size == 1 && shared == none) shared = next++;
    result.merged.push_back(size == 0 ? none : size == 1 ? shared : next++);
  }
  for (std::int32_t& group : result.merged)
    if (group == none) group = next;
  result.count = next + 1;
  for (Index j = 0; j < columns.dim(); ++j) result.group_of.push_back(result.merged[as_size(groups.group_of(j))]);
  return result;
}

FeatureGroups FeatureGroups::discover(const FeatureColumns& columns, Index unknown_groups) {
  std::vector<std::size_t> entries(as_size(columns.row_count()));
  for (Index j = 0; j < columns.dim(); ++j)
    for (const std::int32_t row : columns.column(j).rows) ++entries[as_size(row)];
  const std::size_t longest = entries.empty() ? 0 : *std::max_element(entries.begin(), entries.end());
  const ColourClasses colours(columns, features_by_count(columns));
  const bool are_columns = colours.classes().size() <= max_groups_per_entry * longest;
  const std::size_t count = are_columns ? colours.classes().size() : 1;
  std::vector<std::int32_t> group_of(as_size(columns.dim()), static_cast<std::int32_t>(count));
  for (std::size_t group = 0; group < colours.classes().size(); ++group)
    for (const std::int32_t feature : colours.classes()[group])
      group_of[as_size(feature)] = static_cast<std::int32_t>(are_columns ? group : 0);
  FeatureGroups result = of(PriorGroups(std::vector<std::string>(count + 1), std::move(group_of)), columns);
  result.merged.assign(as_size(unknown_groups), static_cast<std::int32_t>(result.count - 1));
  return result;
}

std::vector<std::int32_t> FeatureGroups::colouring_order(const FeatureColumns& columns) const {
  std::vector<std::int32_t> order = features_by_count(columns);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return group_of[as_size(a)] < group_of[as_size(b)]; });
  return order;
}

}  // namespace dyad
