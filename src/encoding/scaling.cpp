#include "encoding/scaling.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

/// Limit on values, centers and scales. The square of a larger number may overflow (the largest double is 1.8e308).
constexpr double max_scalable = 1e150;

struct WeightedValue {
  double value;
  double weight;
};

double total_weight(const std::vector<WeightedValue>& values) {
  double sum = 0;
  for (const WeightedValue& weighted : values) sum += weighted.weight;
  return sum;
}

/// Quantile of the values, each repeated as often as its weight. `share`: 0.5 is the median. Sorts `values`.
double quantile(std::vector<WeightedValue>& values, double share) {
  std::sort(values.begin(), values.end(),
            [](const WeightedValue& a, const WeightedValue& b) { return a.value < b.value; });
  double remaining_rank = std::floor(share * (total_weight(values) - 1));
  for (const WeightedValue& weighted : values) {
    remaining_rank -= weighted.weight;
    if (remaining_rank < 0) return weighted.value;
  }
  return values.back().value;
}

/// Median absolute deviation of the values that differ from the median. It is positive also if most values are equal,
/// for example 0. It is 0 if all values are equal.
double nonzero_median_deviation(const std::vector<WeightedValue>& values, double median) {
  std::vector<WeightedValue> distances;
  for (const WeightedValue& weighted : values)
    if (weighted.value != median) distances.push_back({std::abs(weighted.value - median), weighted.weight});
  return distances.empty() ? 0 : quantile(distances, 0.5);
}

}  // namespace

double Scaling::apply(double x) const { return (std::clamp(x, low, high) - center) / scale; }

bool Scaling::is_valid() const {
  return std::abs(center) <= max_scalable && scale > 0 && scale <= max_scalable && std::isfinite(low) &&
         std::isfinite(high) && low <= center && center <= high;
}

Scaling robust_scaling(const std::vector<double>& numbers, std::span<const double> weights) {
  // Distance from the median, in median absolute deviations. Sensitivity: docs/constants.md.
  constexpr double outlier_threshold_mads = 30;
  // Distance from the mean, in standard deviations. Sensitivity: docs/constants.md.
  constexpr double min_clip_distance_deviations = 6;
  // Multiple of the largest distance of a value that is no outlier. Sensitivity: docs/constants.md.
  constexpr double clip_margin = 1.5;
  Scaling scaling;
  std::vector<WeightedValue> values;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::abs(numbers[i]) < max_scalable) values.push_back({numbers[i], weights.empty() ? 1 : weights[i]});
  if (values.empty()) return scaling;
  const double median = quantile(values, 0.5);
  const double median_deviation = nonzero_median_deviation(values, median);
  std::erase_if(values, [&](const WeightedValue& weighted) {
    return std::abs(weighted.value - median) > outlier_threshold_mads * median_deviation;
  });

  const double weight = total_weight(values);
  double mean_offset = 0;
  for (const WeightedValue& weighted : values) mean_offset += (weighted.value - median) * weighted.weight / weight;
  double variance = 0;
  double max_distance = 0;
  for (const WeightedValue& weighted : values) {
    const double centered = weighted.value - median - mean_offset;
    variance += centered * centered * weighted.weight / weight;
    max_distance = std::max(max_distance, std::abs(centered));
  }
  scaling.center = median + mean_offset;
  const double deviation = std::sqrt(variance);
  // A column is constant up to rounding if its standard deviation is at most 1e-12 (4500 machine epsilons) times the
  // magnitude of its mean. Sensitivity: docs/constants.md.
  constexpr double max_rounding_ratio = 1e-12;
  const double rounding = max_rounding_ratio * std::abs(scaling.center);
  scaling.scale = deviation > rounding && deviation > std::numeric_limits<double>::min() ? deviation : 1;
  // The range of fewer values does not bound the range of later values. Sensitivity: docs/constants.md.
  constexpr double min_weight_for_clipping = 100;
  if (weight < min_weight_for_clipping || deviation <= rounding) return scaling;
  const double clip_distance = std::max(min_clip_distance_deviations * scaling.scale, clip_margin * max_distance);
  scaling.low = scaling.center - clip_distance;
  scaling.high = scaling.center + clip_distance;
  return scaling;
}

}  // namespace dyad
