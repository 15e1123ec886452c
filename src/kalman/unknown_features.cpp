#include "kalman/unknown_features.h"

#include <cmath>

namespace dyad {
namespace {

/// E[(u, a)(u, a)'] of one feature, for a feature of scale 1.
Small<double> moments_of(const FeatureBelief<double>& feature, const KalmanOptions& options,
                         std::span<const double> signs) {
  const Index rank = options.shape.rank;
  const double scale = feature.scale;
  const double square = scale * scale;
  const bool has_own_square = options.shape.diagonal == Diagonal::tied && options.shape.left_dim == 0;
  Vector<double> mean(rank + 1);
  Vector<double> variance(rank + 1);
  mean[0] = feature.weight * scale + feature.square * square;
  variance[0] = feature.weight_variance * square + feature.square_variance * square * square;
  Small<double> moments = Small<double>::Zero(rank + 1, rank + 1);
  for (Index c = 0; c < rank; ++c) {
    const double a = feature.factors[c] * scale;
    const double of_a = feature.factor_variances[c] * square;
    mean[c + 1] = a;
    variance[c + 1] = of_a;
    if (!has_own_square) continue;
    // u contains sign a^2.
    const double sign = signs[static_cast<std::size_t>(c)];
    mean[0] += sign * (a * a + of_a);
    variance[0] += 4 * a * a * of_a + 2 * of_a * of_a;
    moments(0, c + 1) = moments(c + 1, 0) = 2 * sign * a * of_a;
  }
  moments += mean * mean.transpose();
  moments.diagonal() += variance;
  return moments;
}

}  // namespace

UnknownFeatures::UnknownFeatures(const KalmanFilter<double>& filter, std::vector<Index> groups, Index group_count)
    : groups_(std::move(groups)), is_right_(static_cast<std::size_t>(group_count)) {
  const KalmanOptions& options = filter.options();
  const Index size = options.shape.rank + 1;
  const std::vector<double> signs = filter.factor_signs();
  const Prior& prior = filter.first_prior();
  const std::vector<double> zeros(static_cast<std::size_t>(options.shape.rank));
  const std::vector<double> of_factors(zeros.size(), prior.factors);
  const FeatureBelief<double> before_data{
      .factors = zeros.data(),
      .factor_variances = of_factors.data(),
      .weight_variance = options.shape.linear ? prior.weights : 0,
      .square_variance = options.shape.diagonal == Diagonal::free ? prior.squares : 0,
      .scale = 1};
  moments_.assign(static_cast<std::size_t>(group_count), Small<double>::Zero(size, size));
  std::vector<double> counts(moments_.size());
  for (Index j = 0; j < options.shape.dim; ++j) {
    const Index group = groups_[static_cast<std::size_t>(j)];
    if (group < 0) continue;
    const auto at = static_cast<std::size_t>(group);
    is_right_[at] = options.shape.left_dim > 0 && j >= options.shape.left_dim;
    const FeatureBelief<double> feature = filter.belief_of(j);
    if (!(feature.scale > 0)) continue;
    moments_[at] += moments_of(feature, options, signs);
    counts[at] += 1;
  }
  moments_.push_back(moments_of(before_data, options, signs));
  for (std::size_t group = 0; group < counts.size(); ++group)
    if (counts[group] > 0)
      moments_[group] /= counts[group];
    else
      moments_[group] = moments_.back();
}

double UnknownFeatures::variance(const KalmanFilter<double>& filter, const Rows<double>& rows, Index i,
                                 std::span<const Index> missing) const {
  const KalmanOptions& options = filter.options();
  const bool two_sides = options.shape.left_dim > 0;
  std::vector<Unknown> unknown;
  for (const Index group : missing) {
    const auto at = static_cast<std::size_t>(group);
    unknown.push_back({&moments_[at], is_right_[at]});
  }
  rows.for_each_entry(i, [&](Index j, double x) {
    if (x == 0 || filter.belief_of(j).scale > 0) return;
    const Index group = groups_[static_cast<std::size_t>(j)];
    unknown.push_back({group < 0 ? &moments_.back() : &moments_[static_cast<std::size_t>(group)],
                       two_sides && j >= options.shape.left_dim});
  });
  if (unknown.empty()) return 0;

  const Index rank = options.shape.rank;
  Vector<double> projections[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  Vector<double> spreads[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  rows.for_each_entry(i, [&](Index j, double x) {
    const FeatureBelief<double> feature = filter.belief_of(j);
    const int side = two_sides && j >= options.shape.left_dim ? 1 : 0;
    for (Index c = 0; c < rank; ++c) {
      projections[side][c] += feature.factors[c] * x;
      spreads[side][c] += feature.factor_variances[c] * x * x;
    }
  });
  const std::vector<double> all_signs = filter.factor_signs();
  const Eigen::Map<const Vector<double>> signs(all_signs.data(), rank);
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

}  // namespace dyad
