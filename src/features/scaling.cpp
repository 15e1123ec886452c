#include "features/scaling.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The typical distance from the median, of the values that differ from it: a column that is mostly 0 has one, too.
double typical_distance(const std::vector<double>& values, double median) {
  std::vector<double> distances;
  for (const double value : values)
    if (value != median) distances.push_back(std::abs(value - median));
  return distances.empty() ? 0 : quantile(distances, 0.5);
}

}  // namespace

double Scaling::apply(double x) const { return (std::clamp(x, low, high) - centre) / scale; }

bool Scaling::is_valid() const {
  return std::isfinite(centre) && std::isfinite(scale) && scale > 0 && std::isfinite(low) && std::isfinite(high) &&
         low <= high;
}

Scaling robust_scaling(std::vector<double> values) {
  constexpr double wild = 30;
  constexpr double usual_reach = 6;
  constexpr double margin = 1.5;
  constexpr double largest = 1e150;  // the square of what is beyond cannot be trusted
  Scaling scaling;
  std::erase_if(values, [](double value) { return !(std::abs(value) < largest); });
  if (values.empty()) return scaling;
  const double median = quantile(values, 0.5);
  const double distance = typical_distance(values, median);
  std::erase_if(values, [&](double value) { return std::abs(value - median) > wild * distance; });

  double mean = 0;
  for (const double value : values) mean += (value - median) / static_cast<double>(values.size());
  double variance = 0;
  double furthest = 0;
  for (const double value : values) {
    const double centred = value - median - mean;
    variance += centred * centred / static_cast<double>(values.size());
    furthest = std::max(furthest, std::abs(centred));
  }
  scaling.centre = median + mean;
  const double deviation = std::sqrt(variance);
  const double rounding = 1e-12 * std::abs(scaling.centre);
  scaling.scale = deviation > rounding && deviation > std::numeric_limits<double>::min() ? deviation : 1;
  // Rows that are few, or all the same, do not tell what is far out.
  constexpr std::size_t enough = 100;
  if (values.size() < enough || deviation <= rounding) return scaling;
  const double reach = std::max(usual_reach * scaling.scale, margin * furthest);
  scaling.low = scaling.centre - reach;
  scaling.high = scaling.centre + reach;
  return scaling;
}

}  // namespace dyad
