#pragma once

#include <limits>
#include <span>
#include <vector>

namespace dyad {

/// Affine scaling with clipping: z = (clamp(x, low, high) - center) / scale.
struct Scaling {
  double center = 0;                                 ///< in units of x
  double scale = 1;                                  ///< in units of x; positive
  double low = -std::numeric_limits<double>::max();  ///< in units of x; the default does not clip
  double high = std::numeric_limits<double>::max();  ///< in units of x; the default does not clip

  [[nodiscard]] double apply(double x) const;
  /// True if all numbers are finite, |center| and scale are at most 1e150, scale > 0 and low <= center <= high.
  [[nodiscard]] bool is_valid() const;
};

/// Scaling by the mean and standard deviation s of the values that are not outliers. An outlier differs from the median
/// by more than 30 times the median absolute deviation of the values other than the median. Clips at a distance of
/// max(6 s, 1.5 m) from the mean, where m is the largest distance of a value that is not an outlier. Does not clip
/// if the total weight is below 100. A constant column gets scale 1 and is not clipped. `weights` are repetition
/// counts; empty: 1.
Scaling robust_scaling(const std::vector<double>& values, std::span<const double> weights = {});

}  // namespace dyad
