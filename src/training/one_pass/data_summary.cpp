#include "training/one_pass/data_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/median.h"

namespace dyad {
namespace {

/// Outliers are clipped at this number of median absolute deviations from the median. For Gaussian values that is 6.7
/// standard deviations. Sensitivity: docs/constants.md.
constexpr double outlier_threshold_mads = 10;

/// Statistics of clipped values.
struct RobustStatistics {
  double mean = 0;
  double variance = 0;
  double min = 0;
  double max = 0;
};

RobustStatistics robust_statistics(std::vector<double> values) {
  if (values.empty()) return {};
  const double center = median(values);
  std::vector<double> distances(values.size());
  std::transform(values.begin(), values.end(), distances.begin(), [&](double x) { return std::abs(x - center); });
  double threshold = outlier_threshold_mads * median(distances);
  // If more than half of the values are equal, the median distance is 0 and outliers cannot be identified.
  if (!(threshold > 0)) threshold = std::numeric_limits<double>::max();
  const auto count = static_cast<double>(values.size());
  RobustStatistics result{0, 0, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (double& x : values) {
    x = std::clamp(x, center - threshold, center + threshold);
    result.mean += x / count;
    result.min = std::min(result.min, x);
    result.max = std::max(result.max, x);
  }
  for (const double x : values) result.variance += (x - result.mean) * (x - result.mean) / count;
  return result;
}

/// Robust mean of squared norms. If it is 0, 1 is returned: the squared norm of a row with one non-zero of size 1.
double robust_squared_norm(const std::vector<double>& squared_norms) {
  const double mean = robust_statistics(squared_norms).mean;
  return mean > 0 ? mean : 1;
}

}  // namespace

template <typename Scalar>
DataSummary DataSummary::of(const Rows<Scalar>& rows, std::span<const double> scales, const KalmanOptions& options) {
  std::vector<double> entries;
  std::array<std::vector<double>, 2> squared_norms;  // of both sides
  std::vector<double> targets;
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weight(i) > 0)) continue;
    double count = 0;
    std::array<double, 2> squared_norm{};
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const double scale = scales[static_cast<std::size_t>(j)];
      if (!(scale > 0)) return;
      count += 1;
      squared_norm[options.shape.left_dim > 0 && j >= options.shape.left_dim ? 1 : 0] +=
          std::pow(static_cast<double>(x) / scale, 2);
    });
    entries.push_back(count);
    for (std::size_t side = 0; side < 2; ++side) squared_norms[side].push_back(squared_norm[side]);
    targets.push_back(static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]));
  }
  DataSummary summary;
  summary.entries_per_row = std::max(1.0, robust_statistics(entries).mean);
  summary.left_squared_norm = robust_squared_norm(squared_norms[0]);
  summary.right_squared_norm = robust_squared_norm(squared_norms[1]);
  const RobustStatistics target = robust_statistics(targets);
  summary.target_mean = target.mean;
  summary.min_target = target.min;
  summary.max_target = target.max;
  summary.predictor_variance = options.likelihood->predictor_variance(target.variance);
  if (!options.likelihood->has_identity_link()) {
    double observed = 0;
    for (const double y : targets) observed += options.likelihood->observed(y);
    const double mean = options.likelihood->constant_mean(observed, static_cast<double>(targets.size()));
    summary.initial_predictor = options.likelihood->link(mean);
  }
  return summary;
}

Prior DataSummary::prior(const PriorShares& shares, const KalmanOptions& options) const {
  const bool is_bilinear = options.shape.left_dim > 0;
  const double squared_norm = is_bilinear ? left_squared_norm + right_squared_norm : left_squared_norm;
  // The variance of w'x is P |x|^2.
  const double weight_variance = shares.weights * predictor_variance / squared_norm;
  // With factor variances P the variance of x'Mx is 2k (P |x|^2)^2, and that of x'Mz is k P^2 |x|^2 |z|^2. Without a
  // linear term the interactions explain all of the variance.
  const double norm_product =
      is_bilinear ? std::sqrt(left_squared_norm * right_squared_norm) : std::sqrt(2.0) * left_squared_norm;
  const double share = options.shape.linear ? shares.factors : std::max(1.0, shares.weights);
  const double factor_variance =
      std::sqrt(share * predictor_variance / static_cast<double>(options.shape.rank)) / norm_product;
  // The prior variance of the intercept includes the squared mean of the targets. Classes start at their log-odds.
  return {predictor_variance + target_mean * target_mean, weight_variance, weight_variance, factor_variance,
          initial_predictor};
}

Prior DataSummary::hierarchical_prior(const KalmanOptions& options) const {
  const bool is_classification = options.likelihood->is_classification();
  // Classes: log-odds of two standard deviations or less have probabilities between 0.02 and 0.98.
  constexpr double class_variance = 4;
  const double variance = is_classification ? class_variance : predictor_variance;
  const bool is_bilinear = options.shape.left_dim > 0;
  const double squared_norm = is_bilinear ? left_squared_norm + right_squared_norm : left_squared_norm;
  const double weight_variance = 0.5 * variance / std::max(1.0, squared_norm);
  // With factor variances P, the variance of x'Mx is about 4k P^2 sum_{i<j} x_i^2 x_j^2, and that of x'Mz is
  // k P^2 |x|^2 |z|^2.
  const double products = is_bilinear ? left_squared_norm * right_squared_norm
                                      : 4 * std::max(1.0, left_squared_norm * (left_squared_norm - 1) / 2);
  const double factor_variance = std::sqrt(variance / (static_cast<double>(options.shape.rank) * products));
  // Variance of the mean of the targets of the first rows: at most that of single targets.
  const double intercept_variance = is_classification ? 1 : variance / 4 + target_mean * target_mean;
  return {intercept_variance, weight_variance, weight_variance, factor_variance, initial_predictor};
}

template DataSummary DataSummary::of(const Rows<float>&, std::span<const double>, const KalmanOptions&);
template DataSummary DataSummary::of(const Rows<double>&, std::span<const double>, const KalmanOptions&);

}  // namespace dyad
