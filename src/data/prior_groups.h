#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <dyad/types.h>

namespace dyad {

/// Partition of the features into groups whose parameters share a prior distribution: the categories of a column, or
/// the groups of a file. Groups can be empty. Features beyond feature_count() are in group 0.
class PriorGroups {
 public:
  /// All features are in one group without a name.
  PriorGroups() : names_(1) {}
  /// `names`: one per group, at least one. `group_of`: group of each feature.
  explicit PriorGroups(std::vector<std::string> names, std::vector<std::int32_t> group_of = {})
      : names_(std::move(names)), group_of_(std::move(group_of)) {}

  /// Number of groups.
  [[nodiscard]] Index count() const { return static_cast<Index>(names_.size()); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& name(Index group) const { return names_[static_cast<std::size_t>(group)]; }

  [[nodiscard]] Index feature_count() const { return static_cast<Index>(group_of_.size()); }
  [[nodiscard]] Index group_of(Index feature) const {
    return feature < feature_count() ? static_cast<Index>(group_of_[static_cast<std::size_t>(feature)]) : 0;
  }
  /// Groups of all features.
  [[nodiscard]] const std::vector<std::int32_t>& group_of_features() const { return group_of_; }

 private:
  std::vector<std::string> names_;
  std::vector<std::int32_t> group_of_;
};

}  // namespace dyad
