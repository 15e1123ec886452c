#include "solvers/kalman/unknown_features.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dyad {
namespace {

/// E[(u, a)(u, a)'] of one feature, for a feature of scale 1.
template <typename Scalar>
Small<double> moments_of(const FeaturePosterior<Scalar>& feature, const KalmanOptions& options,
                         std::span<const Scalar> signs) {
  const Index rank = options.shape.rank;
  const auto scale = static_cast<double>(feature.scale);
  const double square = scale * scale;
  const bool has_own_square = options.shape.diagonal == Diagonal::tied && options.shape.left_dim == 0;
  Vector<double> mean(rank + 1);
  Vector<double> variance(rank + 1);
  mean[0] = static_cast<double>(feature.weight) * scale + static_cast<double>(feature.square) * square;
  variance[0] = static_cast<double>(feature.weight_variance) * square +
                static_cast<double>(feature.square_variance) * square * square;
  Small<double> moments = Small<double>::Zero(rank + 1, rank + 1);
  for (Index c = 0; c < rank; ++c) {
    const double a = static_cast<double>(feature.factors[c]) * scale;
    const double of_a = static_cast<double>(feature.factor_variances[c]) * square;
    mean[c + 1] = a;
    variance[c + 1] = of_a;
    if (!has_own_square) continue;
    // u contains sign a^2.
    const auto sign = static_cast<double>(signs[static_cast<std::size_t>(c)]);
    mean[0] += sign * (a * a + of_a);
    variance[0] += 4 * a * a * of_a + 2 * of_a * of_a;
    moments(0, c + 1) = moments(c + 1, 0) = 2 * sign * a * of_a;
  }
  moments += mean * mean.transpose();
  moments.diagonal() += variance;
  return moments;
}

}  // namespace

template <typename Scalar>
UnknownFeatures::UnknownFeatures(const KalmanFilter<Scalar>& filter, std::vector<Index> groups, Index group_count)
    : groups_(std::move(groups)), is_right_(static_cast<std::size_t>(group_count)) {
  find_moments(filter, filter.options().shape.dim);
}

template <typename Scalar>
UnknownFeatures::UnknownFeatures(const KalmanFilter<Scalar>& filter) : is_right_{false, true} {
  // The standard error of a deviation from the moments of n normal features is 1 / sqrt(2 n), 2%.
  constexpr Index max_sample_size = 1024;
  find_moments(filter, std::min(filter.options().shape.dim, max_sample_size));
}

/// From all features, or from a sample at the multiples of the golden ratio, which has no period in common with them.
template <typename Scalar>
void UnknownFeatures::find_moments(const KalmanFilter<Scalar>& filter, Index sample_size) {
  const KalmanOptions& options = filter.options();
  const Index size = options.shape.rank + 1;
  const std::vector<Scalar> signs = filter.factor_signs();
  const Prior& prior = filter.first_prior();
  const std::vector<Scalar> zeros(static_cast<std::size_t>(options.shape.rank));
  const std::vector<Scalar> of_factors(zeros.size(), static_cast<Scalar>(prior.factors));
  const FeaturePosterior<Scalar> before_data{
      .factors = zeros.data(),
      .factor_variances = of_factors.data(),
      .weight_variance = static_cast<Scalar>(options.shape.linear ? prior.weights : 0),
      .square_variance = static_cast<Scalar>(options.shape.diagonal == Diagonal::free ? prior.squares : 0),
      .scale = 1};
  moments_.assign(is_right_.size(), Small<double>::Zero(size, size));
  std::vector<double> counts(moments_.size());
  for (Index i = 0; i < sample_size; ++i) {
    const double place = static_cast<double>(i) * std::numbers::phi;
    const Index j = sample_size == options.shape.dim
                        ? i
                        : static_cast<Index>((place - std::floor(place)) * static_cast<double>(options.shape.dim));
    const Index group = group_of(j, options);
    if (group < 0) continue;
    const auto at = static_cast<std::size_t>(group);
    is_right_[at] = options.shape.left_dim > 0 && j >= options.shape.left_dim;
    const FeaturePosterior<Scalar> feature = filter.feature_posterior(j);
    if (!(feature.scale > 0)) continue;
    moments_[at] += moments_of<Scalar>(feature, options, signs);
    counts[at] += 1;
  }
  moments_.push_back(moments_of<Scalar>(before_data, options, signs));
  for (std::size_t group = 0; group < counts.size(); ++group)
    if (counts[group] > 0)
      moments_[group] /= counts[group];
    else
      moments_[group] = moments_.back();
}

template <typename Scalar>
double UnknownFeatures::variance(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows, Index i,
                                 std::span<const Index> missing) const {
  const KalmanOptions& options = filter.options();
  const bool two_sides = options.shape.left_dim > 0;
  std::vector<Unknown> unknown;
  for (const Index group : missing) {
    const auto at = static_cast<std::size_t>(group);
    unknown.push_back({&moments_[at], is_right_[at]});
  }
  rows.for_each_entry(i, [&](Index j, Scalar x) {
    if (x == 0 || filter.feature_posterior(j).scale > 0) return;
    const Index group = group_of(j, options);
    unknown.push_back({group < 0 ? &moments_.back() : &moments_[static_cast<std::size_t>(group)],
                       two_sides && j >= options.shape.left_dim});
  });
  if (unknown.empty()) return 0;

  const Index rank = options.shape.rank;
  Vector<double> projections[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  Vector<double> spreads[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  rows.for_each_entry(i, [&](Index j, Scalar value) {
    const auto x = static_cast<double>(value);
    const FeaturePosterior<Scalar> feature = filter.feature_posterior(j);
    const int side = two_sides && j >= options.shape.left_dim ? 1 : 0;
    for (Index c = 0; c < rank; ++c) {
      projections[side][c] += static_cast<double>(feature.factors[c]) * x;
      spreads[side][c] += static_cast<double>(feature.factor_variances[c]) * x * x;
    }
  });
  const std::vector<Scalar> all_signs = filter.factor_signs();
  const Vector<double> signs = Eigen::Map<const Vector<Scalar>>(all_signs.data(), rank).template cast<double>();
  const double times = two_sides ? 1 : 2;  // M_ij and M_ji
  double variance = 0;
  for (std::size_t a = 0; a < unknown.size(); ++a) {
    const Small<double>& moments = *unknown[a].moments;
    const int other = two_sides && !unknown[a].right ? 1 : 0;
    Vector<double> slope(rank + 1);
    slope << 1, times * signs.cwiseProduct(projections[other]);
    variance += slope.dot(moments * slope) + times * times * moments.diagonal().tail(rank).dot(spreads[other]);
    // Two features without data: 2 a'diag(signs) a', of independent factors.
    for (std::size_t b = 0; b < a; ++b) {
      if (two_sides && unknown[a].right == unknown[b].right) continue;
      const auto of_a = moments.bottomRightCorner(rank, rank);
      const auto of_b = unknown[b].moments->bottomRightCorner(rank, rank);
      variance += times * times * signs.dot(of_a.cwiseProduct(of_b) * signs);
    }
  }
  return variance;
}

template UnknownFeatures::UnknownFeatures(const KalmanFilter<float>&, std::vector<Index>, Index);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<double>&, std::vector<Index>, Index);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<float>&);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<double>&);
template double UnknownFeatures::variance(const KalmanFilter<float>&, const Rows<float>&, Index,
                                          std::span<const Index>) const;
template double UnknownFeatures::variance(const KalmanFilter<double>&, const Rows<double>&, Index,
                                          std::span<const Index>) const;

}  // namespace dyad
