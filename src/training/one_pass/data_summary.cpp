#include "training/one_pass/data_summary.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/median.h"

namespace dyad {
namespace {

struct Usual {
  double mean = 0;
  double variance = 0;
  double least = 0;
  double most = 0;
};

Usual usual(std::vector<double> numbers) {
  if (numbers.empty()) return {};
  const double centre = median(numbers);
  std::vector<double> distances(numbers.size());
  std::transform(numbers.begin(), numbers.end(), distances.begin(), [&](double x) { return std::abs(x - centre); });
  double reach = 10 * median(distances);
  if (!(reach > 0)) reach = std::numeric_limits<double>::max();  // most values are equal: outliers cannot be identified
  const auto count = static_cast<double>(numbers.size());
  Usual result{0, 0, std::numeric_limits<double>::max(), std::numeric_limits<double>::lowest()};
  for (double& x : numbers) {
    x = std::clamp(x, centre - reach, centre + reach);
    result.mean += x / count;
    result.least = std::min(result.least, x);
    result.most = std::max(result.most, x);
  }
  for (const double x : numbers) result.variance += (x - result.mean) * (x - result.mean) / count;
  return result;
}

/// Rows that are still empty will have an entry or so.
double usual_length(const std::vector<double>& lengths) {
  const double length = usual(lengths).mean;
  return length > 0 ? length : 1;
}

}  // namespace

template <typename Scalar>
DataSummary DataSummary::at(const Rows<Scalar>& rows, std::span<const double> scales, const KalmanOptions& options) {
  std::vector<double> entries;
  std::array<std::vector<double>, 2> lengths;
  std::vector<double> targets;
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weight(i) > 0)) continue;
    double count = 0;
    std::array<double, 2> length{};
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const double scale = scales[static_cast<std::size_t>(j)];
      if (!(scale > 0)) return;
      count += 1;
      length[options.shape.left_dim > 0 && j >= options.shape.left_dim ? 1 : 0] +=
          std::pow(static_cast<double>(x) / scale, 2);
    });
    entries.push_back(count);
    for (std::size_t side = 0; side < 2; ++side) lengths[side].push_back(length[side]);
    targets.push_back(static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]));
  }
  DataSummary look;
  look.entries = std::max(1.0, usual(entries).mean);
  look.left_length = usual_length(lengths[0]);
  look.right_length = usual_length(lengths[1]);
  const Usual target = usual(targets);
  look.target_mean = target.mean;
  look.least_target = target.least;
  look.most_target = target.most;
  look.predictor_variance = options.likelihood->predictor_variance(target.variance);
  if (!options.likelihood->has_identity_link()) {
    double observed = 0;
    for (const double y : targets) observed += options.likelihood->observed(y);
    const double mean = options.likelihood->constant_mean(observed, static_cast<double>(targets.size()));
    look.initial_predictor = options.likelihood->link(mean);
  }
  return look;
}

Prior DataSummary::prior(const PriorShares& shares, const KalmanOptions& options) const {
  const bool two_sides = options.shape.left_dim > 0;
  const double length = two_sides ? left_length + right_length : left_length;
  const double of_weights = shares.weights * predictor_variance / length;
  // The variance of x'Mx is 2k (P |x|^2)^2, that of x'Mz is k P^2 |x|^2 |z|^2. Without weights all of it is theirs.
  const double pair = two_sides ? std::sqrt(left_length * right_length) : std::sqrt(2.0) * left_length;
  const double share = options.shape.linear ? shares.factors : std::max(1.0, shares.weights);
  const double of_factors = std::sqrt(share * predictor_variance / static_cast<double>(options.shape.rank)) / pair;
  // Numbers are centred by the first rows; the intercept of classes begins at their log-odds.
  return {predictor_variance + target_mean * target_mean, of_weights, of_weights, of_factors, initial_predictor};
}

template DataSummary DataSummary::at(const Rows<float>&, std::span<const double>, const KalmanOptions&);
template DataSummary DataSummary::at(const Rows<double>&, std::span<const double>, const KalmanOptions&);

}  // namespace dyad
