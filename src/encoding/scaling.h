#pragma once

#include <limits>
#include <span>
#include <vector>

namespace dyad {

/// z = (x - centre) / scale, with x taken as `low` or `high` where it lies beyond them.
struct Scaling {
  double centre = 0;
  double scale = 1;
  double low = -std::numeric_limits<double>::max();
  double high = std::numeric_limits<double>::max();

  [[nodiscard]] double apply(double x) const;
  [[nodiscard]] bool is_valid() const;
};

/// From the first rows: mean and standard deviation of the values that are not outliers, so that one broken sensor
/// reading does not squeeze all the others into a point. What lies further out than 6 standard deviations, and further
/// than one and a half times the furthest value that is no outlier, is taken as lying there, unless there are fewer
/// than 100 values to tell that from. A constant column gets scale 1 and no ends. A weight says how often a value
/// counts.
Scaling robust_scaling(const std::vector<double>& values, std::span<const double> weights = {});

}  // namespace dyad
