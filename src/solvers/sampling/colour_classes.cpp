#include "solvers/sampling/colour_classes.h"

#include <algorithm>
#include <numeric>

namespace dyad {
namespace {

/// Maximum number of classes with more than one feature. Bounds the time to 128 tests per entry and the memory to 128
/// bits per row. Features that do not fit get a class each. Sensitivity: docs/constants.md.
constexpr std::size_t max_shared_classes = 128;

}  // namespace

ColourClasses::ColourClasses(const FeatureColumns& columns, std::span<const std::int32_t> order) {
  std::vector<std::vector<bool>> class_rows;  // per class: the rows that contain one of its features
  std::vector<Features> single_classes;
  for (const std::int32_t feature : order) {
    const auto rows = columns.column(feature).rows;
    if (rows.empty()) continue;
    std::size_t colour = 0;
    const auto shares_row = [&](std::int32_t row) { return class_rows[colour][static_cast<std::size_t>(row)]; };
    while (colour < class_rows.size() && std::any_of(rows.begin(), rows.end(), shares_row)) ++colour;
    if (colour == max_shared_classes) {
      single_classes.push_back({feature});
      continue;
    }
    if (colour == class_rows.size()) {
      class_rows.emplace_back(static_cast<std::size_t>(columns.row_count()));
      classes_.emplace_back();
    }
    classes_[colour].push_back(feature);
    for (const std::int32_t row : rows) class_rows[colour][static_cast<std::size_t>(row)] = true;
  }
  classes_.insert(classes_.end(), single_classes.begin(), single_classes.end());
}

std::vector<std::int32_t> features_by_count(const FeatureColumns& columns) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(columns.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return columns.column(a).count() > columns.column(b).count();
  });
  return order;
}

}  // namespace dyad
