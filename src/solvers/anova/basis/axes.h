#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/column_table.h"
#include "model/anova_model.h"

namespace dyad {

/// Number of knots of the function of one column, and the largest number of distinct values that all get a knot.
inline constexpr Index max_knots = 40;
inline constexpr Index max_distinct_knots = 48;
/// Limit on the number of knots of all columns, so that the Gram matrix of 200 columns fits in the default memory. Each
/// column has at least `min_knots`.
inline constexpr Index max_main_knots = 3000;
inline constexpr Index min_knots = 12;
/// Number of knots of the function of one column in a table of `columns` columns.
constexpr Index main_knots(Index columns) {
  return std::clamp(max_main_knots / std::max<Index>(1, columns), min_knots, max_knots);
}
/// Largest number of levels of a categorical column.
inline constexpr Index max_anova_levels = 64;

/// Sorted values of a column, from which the knots of its axes are chosen.
class ColumnDistribution {
 public:
  /// `weights`: repetition counts of the rows; empty: 1.
  ColumnDistribution(const ColumnTable::Column& column, Index index, std::span<const double> weights = {});

  /// True if the column has at least two different values or levels.
  [[nodiscard]] bool is_variable() const;
  /// Number of distinct values or levels.
  [[nodiscard]] Index distinct() const;
  /// Axis with at most about `count` knots or levels. If the column has at most `count` distinct values, each of them
  /// is a knot. Otherwise a value whose share of the rows is at least 1 / count is a knot of its own, the remaining
  /// knots are quantiles of the other values, and the smallest and largest value are knots. Without knots of their own,
  /// values with many rows would share a hat function with their neighbours.
  [[nodiscard]] AnovaAxis make_axis(Index count) const;
  /// Axis of the function of the column alone, in a table of `columns` columns.
  [[nodiscard]] AnovaAxis make_main_axis(Index columns) const;

 private:
  Index index_;
  bool is_categorical_;
  bool has_missing_ = false;
  std::vector<std::pair<double, double>> distinct_;  ///< numeric columns: value and weight, increasing
  std::vector<Index> levels_;                        ///< categorical columns: by decreasing frequency
};

/// Basis functions of one axis for all rows of a table.
struct HatRows {
  std::vector<std::int32_t> index;
  std::vector<double> first;
  std::vector<double> second;
  bool is_indicator = true;  ///< `second` is 0 for all rows, as for categorical and discrete columns

  HatRows() = default;
  HatRows(const AnovaAxis& axis, const ColumnTable& table);
  [[nodiscard]] Index count() const { return static_cast<Index>(index.size()); }
};

}  // namespace dyad
