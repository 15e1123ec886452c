#include "training/state/anova_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>

namespace dyad {
namespace {

/// Missing numbers in an archive, which contains finite numbers only. Scaled numbers are smaller.
constexpr double archived_missing = std::numeric_limits<double>::max();

}  // namespace

void AnovaRows::append(const ColumnTable& block, std::size_t i, double target, double weight) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) table.columns[c].values.push_back(block.columns[c].values[i]);
  targets.push_back(target);
  weights.push_back(weight);
}

void AnovaRows::replace(std::size_t at, const ColumnTable& block, std::size_t i, double target, double weight) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) table.columns[c].values[at] = block.columns[c].values[i];
  targets[at] = target;
  weights[at] = weight;
}

void AnovaRows::clear() {
  for (ColumnTable::Column& column : table.columns) column.values.clear();
  targets.clear();
  weights.clear();
}

double AnovaRows::total_weight() const { return std::accumulate(weights.begin(), weights.end(), 0.0); }

std::vector<double> AnovaRows::weights_in_units(double unit) const {
  std::vector<double> result;
  if (std::any_of(weights.begin(), weights.end(), [&](double weight) { return weight != unit; }))
    for (const double weight : weights) result.push_back(weight / unit);
  return result;
}

void AnovaRows::archive(Archive& archive, Index rows) {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    std::vector<double> finite;
    if (!archive.is_loading())
      for (const double value : table.columns[c].values) finite.push_back(std::isnan(value) ? archived_missing : value);
    archive.vector("column." + std::to_string(c), finite, rows);
    if (!archive.is_loading()) continue;
    std::replace(finite.begin(), finite.end(), archived_missing, std::numeric_limits<double>::quiet_NaN());
    table.columns[c].values = std::move(finite);
  }
  archive.vector("targets", targets, rows);
  archive.vector("weights", weights, rows);
}

ColumnBounds::ColumnBounds(const FeatureMap& map) {
  for (const Column& column : map.columns()) {
    const Scaling& scaling = column.scaling;
    bounds_.push_back(
        {(scaling.low - scaling.center) / scaling.scale, (scaling.high - scaling.center) / scaling.scale});
  }
}

void ColumnBounds::extend(const ColumnTable& table) {
  std::vector<double> numbers;
  for (std::size_t c = 0; c < bounds_.size(); ++c) {
    const ColumnTable::Column& column = table.columns[c];
    if (column.is_categorical) continue;
    auto& [low, high] = bounds_[c];
    numbers.clear();
    std::copy_if(column.values.begin(), column.values.end(), std::back_inserter(numbers),
                 [](double value) { return !std::isnan(value); });
    if (std::all_of(numbers.begin(), numbers.end(), [&](double value) { return value >= low && value <= high; }))
      continue;
    const Scaling scaling = robust_scaling(numbers);
    low = std::min(low, scaling.low);
    high = std::max(high, scaling.high);
  }
}

void ColumnBounds::clip(ColumnTable& table) const {
  for (std::size_t c = 0; c < bounds_.size(); ++c)
    if (!table.columns[c].is_categorical)
      for (double& value : table.columns[c].values)
        if (!std::isnan(value)) value = std::clamp(value, bounds_[c].low, bounds_[c].high);
}

void ColumnBounds::write_to(FeatureMap& map) const {
  for (std::size_t c = 0; c < bounds_.size(); ++c)
    if (map.columns()[c].role == Column::Role::numeric) map.set_clipping(c, bounds_[c].low, bounds_[c].high);
}

void AnovaSample::add(const ColumnTable& block, std::size_t i, double target, double weight) {
  ++rows_seen;
  if (!is_full()) return rows.append(block, i, target, weight);
  const auto slot = static_cast<Index>(random_.uniform() * static_cast<double>(rows_seen));
  if (slot < max_rows_) rows.replace(static_cast<std::size_t>(slot), block, i, target, weight);
}

}  // namespace dyad
