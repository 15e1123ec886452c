#include "solvers/anova/basis/axes.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace dyad {

ColumnDistribution::ColumnDistribution(const ColumnTable::Column& column, Index index, std::span<const double> weights)
    : index_(index), is_categorical_(column.is_categorical) {
  const auto weight = [&](std::size_t i) { return weights.empty() ? 1.0 : weights[i]; };
  if (is_categorical_) {
    std::unordered_map<Index, double> totals;
    for (std::size_t i = 0; i < column.values.size(); ++i)
      if (column.values[i] >= 0) totals[static_cast<Index>(column.values[i])] += weight(i);
    std::vector<std::pair<Index, double>> order(totals.begin(), totals.end());
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.second > b.second || (a.second == b.second && a.first < b.first);
    });
    for (const auto& [level, total] : order) levels_.push_back(level);
    return;
  }
  std::vector<std::pair<double, double>> sorted;
  sorted.reserve(column.values.size());
  for (std::size_t i = 0; i < column.values.size(); ++i)
    if (!std::isnan(column.values[i])) sorted.emplace_back(column.values[i], weight(i));
  has_missing_ = sorted.size() < column.values.size();
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [value, count] : sorted) {
    if (distinct_.empty() || distinct_.back().first != value) distinct_.emplace_back(value, 0.0);
    distinct_.back().second += count;
  }
}

bool ColumnDistribution::is_variable() const {
  return is_categorical_ ? !levels_.empty() : distinct_.size() + (has_missing_ ? 1 : 0) > 1;
}

Index ColumnDistribution::distinct() const {
  return static_cast<Index>(is_categorical_ ? levels_.size() : distinct_.size());
}

AnovaAxis ColumnDistribution::make_axis(Index count) const {
  AnovaAxis axis;
  axis.column = index_;
  axis.is_categorical = is_categorical_;
  axis.is_discrete = distinct() <= count;
  if (is_categorical_) {
    axis.levels.assign(levels_.begin(), levels_.begin() + std::min(distinct(), std::max<Index>(count, 2)));
    return axis;
  }
  axis.has_missing_level = has_missing_;
  std::vector<double>& knots = axis.knots;
  if (axis.is_discrete) {
    for (const auto& [value, rows] : distinct_) knots.push_back(value);
    return axis;
  }
  double total = 0;
  for (const auto& [value, weight] : distinct_) total += weight;
  std::vector<std::pair<double, double>> others;  // values without a knot of their own, and cumulative weights
  double sum = 0;
  for (const auto& [value, weight] : distinct_)
    if (weight * static_cast<double>(count) >= total)
      knots.push_back(value);
    else
      others.emplace_back(value, sum += weight);
  const Index quantiles = std::max<Index>(count - static_cast<Index>(knots.size()), 2);
  for (Index q = 0; q < quantiles && !others.empty(); ++q) {
    // position among `sum` repeated values, counted from 0
    const double position =
        std::round(static_cast<double>(q) / static_cast<double>(quantiles - 1) * std::max(0.0, sum - 1));
    const auto found = std::upper_bound(others.begin(), others.end(), position,
                                        [](double bound, const auto& entry) { return bound < entry.second; });
    knots.push_back(found == others.end() ? others.back().first : found->first);
  }
  knots.push_back(distinct_.front().first);
  knots.push_back(distinct_.back().first);
  std::sort(knots.begin(), knots.end());
  knots.erase(std::unique(knots.begin(), knots.end()), knots.end());
  return axis;
}

AnovaAxis ColumnDistribution::make_main_axis(Index columns) const {
  if (is_categorical_) return make_axis(max_anova_levels);
  const Index knots = main_knots(columns);
  const Index distinct_knots = max_distinct_knots * knots / max_knots;
  AnovaAxis axis = make_axis(distinct() <= distinct_knots ? distinct_knots : knots);
  axis.has_tails = axis.knots.size() >= 2;
  return axis;
}

HatRows::HatRows(const AnovaAxis& axis, const ColumnTable& table) {
  const std::vector<double>& values = table.columns[static_cast<std::size_t>(axis.column)].values;
  index.reserve(values.size());
  first.reserve(values.size());
  second.reserve(values.size());
  for (const double value : values) {
    const HatWeights hat = axis.evaluate(value);
    index.push_back(static_cast<std::int32_t>(hat.index));
    first.push_back(hat.first);
    second.push_back(hat.second);
    is_indicator = is_indicator && hat.second == 0;
  }
}

}  // namespace dyad
