#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "solvers/sampling/feature_columns.h"

namespace dyad {

/// Partition of the features that occur into classes, such that no row contains two features of a class. The parameters
/// of the features of a class are conditionally independent given all others, so that a class can be drawn in parallel.
/// Immutable.
class ColourClasses {
 public:
  using Features = std::vector<std::int32_t>;

  /// Greedy colouring: each feature of `order` joins the first class with which it shares no row.
  ColourClasses(const FeatureColumns& columns, std::span<const std::int32_t> order);

  [[nodiscard]] const std::vector<Features>& classes() const { return classes_; }

 private:
  std::vector<Features> classes_;
};

/// Features by decreasing number of rows.
std::vector<std::int32_t> features_by_count(const FeatureColumns& columns);

}  // namespace dyad
