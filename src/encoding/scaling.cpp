#include "encoding/scaling.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

struct Counted {
  double value;
  double weight;
};

double weight_of(const std::vector<Counted>& values) {
  double sum = 0;
  for (const Counted& counted : values) sum += counted.weight;
  return sum;
}

/// The same as if each value were there as often as its weight says.
double quantile(std::vector<Counted>& values, double share) {
  std::sort(values.begin(), values.end(), [](const Counted& a, const Counted& b) { return a.value < b.value; });
  double left = std::floor(share * (weight_of(values) - 1));
  for (const Counted& counted : values) {
    left -= counted.weight;
    if (left < 0) return counted.value;
  }
  return values.back().value;
}

/// The typical distance from the median, of the values that differ from it: a column that is mostly 0 has one, too.
double typical_distance(const std::vector<Counted>& values, double median) {
  std::vector<Counted> distances;
  for (const Counted& counted : values)
    if (counted.value != median) distances.push_back({std::abs(counted.value - median), counted.weight});
  return distances.empty() ? 0 : quantile(distances, 0.5);
}

}  // namespace

double Scaling::apply(double x) const { return (std::clamp(x, low, high) - centre) / scale; }

bool Scaling::is_valid() const {
  constexpr double largest = 1e150;
  return std::abs(centre) <= largest && scale > 0 && scale <= largest && std::isfinite(low) && std::isfinite(high) &&
         low <= centre && centre <= high;
}

Scaling robust_scaling(const std::vector<double>& numbers, std::span<const double> weights) {
  constexpr double outlier_threshold = 30;  // multiples of the typical distance
  constexpr double usual_reach = 6;
  constexpr double margin = 1.5;
  constexpr double largest = 1e150;  // the square of what is beyond cannot be trusted
  Scaling scaling;
  std::vector<Counted> values;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::abs(numbers[i]) < largest) values.push_back({numbers[i], weights.empty() ? 1 : weights[i]});
  if (values.empty()) return scaling;
  const double median = quantile(values, 0.5);
  const double distance = typical_distance(values, median);
  std::erase_if(
      values, [&](const Counted& counted) { return std::abs(counted.value - median) > outlier_threshold * distance; });

  const double all = weight_of(values);
  double mean = 0;
  for (const Counted& counted : values) mean += (counted.value - median) * counted.weight / all;
  double variance = 0;
  double furthest = 0;
  for (const Counted& counted : values) {
    const double centred = counted.value - median - mean;
    variance += centred * centred * counted.weight / all;
    furthest = std::max(furthest, std::abs(centred));
  }
  scaling.centre = median + mean;
  const double deviation = std::sqrt(variance);
  const double rounding = 1e-12 * std::abs(scaling.centre);
  scaling.scale = deviation > rounding && deviation > std::numeric_limits<double>::min() ? deviation : 1;
  // Rows that are few, or all the same, do not tell what is far out.
  constexpr double enough = 100;
  if (all < enough || deviation <= rounding) return scaling;
  const double reach = std::max(usual_reach * scaling.scale, margin * furthest);
  scaling.low = scaling.centre - reach;
  scaling.high = scaling.centre + reach;
  return scaling;
}

}  // namespace dyad
