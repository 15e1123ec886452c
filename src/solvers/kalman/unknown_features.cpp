#include "solvers/kalman/unknown_features.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dyad {
namespace {

/// Posterior E[(u, a)(u, a)'] of the parameters of one feature, after the feature is divided by its scale. u is the sum
/// of its weight and of its coefficient of x_j^2.
template <typename Scalar>
Matrix<double> second_moments(const FeaturePosterior<Scalar>& feature, const KalmanOptions& options,
                              std::span<const Scalar> signs) {
  const Index rank = options.shape.rank;
  const auto scale = static_cast<double>(feature.scale);
  const double square = scale * scale;
  const bool includes_square = options.shape.diagonal == Diagonal::tied && options.shape.left_dim == 0;
  Vector<double> mean(rank + 1);
  Vector<double> variance(rank + 1);
  mean[0] = static_cast<double>(feature.weight) * scale + static_cast<double>(feature.square) * square;
  variance[0] = static_cast<double>(feature.weight_variance) * square +
                static_cast<double>(feature.square_variance) * square * square;
  Matrix<double> moments = Matrix<double>::Zero(rank + 1, rank + 1);
  for (Index c = 0; c < rank; ++c) {
    const double a = static_cast<double>(feature.factors[c]) * scale;
    const double a_variance = static_cast<double>(feature.factor_variances[c]) * square;
    mean[c + 1] = a;
    variance[c + 1] = a_variance;
    if (!includes_square) continue;
    // u contains sign a^2, with E[a^2] = m^2 + P, Var[a^2] = 4 m^2 P + 2 P^2 and Cov[a, a^2] = 2 m P for a ~ N(m, P).
    const auto sign = static_cast<double>(signs[static_cast<std::size_t>(c)]);
    mean[0] += sign * (a * a + a_variance);
    variance[0] += 4 * a * a * a_variance + 2 * a_variance * a_variance;
    moments(0, c + 1) = moments(c + 1, 0) = 2 * sign * a * a_variance;
  }
  moments += mean * mean.transpose();
  moments.diagonal() += variance;
  return moments;
}

}  // namespace

template <typename Scalar>
void predict_with_unknown_features(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows,
                                   const std::function<void(Index row, std::vector<Index>& groups)>& unknown_groups,
                                   std::span<Scalar> predictions, std::span<Scalar> variances) {
  const Index dim = filter.options().shape.dim;
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<Scalar> values;
  std::vector<Index> groups;
  bool has_unknown = false;
  for (Index i = 0; i < rows.count(); ++i) {
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      columns.push_back(static_cast<std::int32_t>(j));
      values.push_back(x);
    });
    groups.clear();
    unknown_groups(i, groups);
    has_unknown = has_unknown || !groups.empty();
    for (const Index group : groups) {
      columns.push_back(static_cast<std::int32_t>(dim + group));
      values.push_back(1);
    }
    offsets.push_back(static_cast<Index>(columns.size()));
  }
  if (!has_unknown) return filter.predict(rows, predictions, variances);
  filter.predict(
      Rows<Scalar>::template sparse_unchecked<Index>(offsets, columns, values, dim + filter.groups().count, {}),
      predictions, variances);
}

template <typename Scalar>
UnknownFeatures::UnknownFeatures(const KalmanFilter<Scalar>& filter, std::vector<Index> groups, Index group_count)
    : groups_(std::move(groups)), is_right_(static_cast<std::size_t>(group_count)) {
  compute_moments(filter, filter.options().shape.dim);
}

template <typename Scalar>
UnknownFeatures::UnknownFeatures(const KalmanFilter<Scalar>& filter) : is_right_{false, true} {
  // The standard deviation estimated from n normal features has the relative standard error 1 / sqrt(2n) = 2%.
  constexpr Index max_sample_size = 1024;
  compute_moments(filter, std::min(filter.options().shape.dim, max_sample_size));
}

/// Averages over all features, or over a sample. Sample i is the feature floor(frac(i phi) dim), where phi is the
/// golden ratio. These features are evenly spread and, unlike every n-th feature, do not favor one of several
/// alternating kinds of features.
template <typename Scalar>
void UnknownFeatures::compute_moments(const KalmanFilter<Scalar>& filter, Index sample_size) {
  const KalmanOptions& options = filter.options();
  const Index size = options.shape.rank + 1;
  const std::vector<Scalar> signs = filter.factor_signs();
  const Prior& prior = filter.prior_variances();
  const std::vector<Scalar> zeros(static_cast<std::size_t>(options.shape.rank));
  const std::vector<Scalar> factor_variances(zeros.size(), static_cast<Scalar>(prior.factors));
  const FeaturePosterior<Scalar> prior_feature{
      .factors = zeros.data(),
      .factor_variances = factor_variances.data(),
      .weight_variance = static_cast<Scalar>(options.shape.linear ? prior.weights : 0),
      .square_variance = static_cast<Scalar>(options.shape.diagonal == Diagonal::free ? prior.squares : 0),
      .scale = 1};
  moments_.assign(is_right_.size(), Matrix<double>::Zero(size, size));
  std::vector<double> counts(moments_.size());
  for (Index i = 0; i < sample_size; ++i) {
    const double position = static_cast<double>(i) * std::numbers::phi;
    const Index j =
        sample_size == options.shape.dim
            ? i
            : static_cast<Index>((position - std::floor(position)) * static_cast<double>(options.shape.dim));
    const Index group = group_of(j, options);
    if (group < 0) continue;
    const auto index = static_cast<std::size_t>(group);
    is_right_[index] = options.shape.left_dim > 0 && j >= options.shape.left_dim;
    const FeaturePosterior<Scalar> feature = filter.feature_posterior(j);
    if (!(feature.scale > 0)) continue;
    moments_[index] += second_moments<Scalar>(feature, options, signs);
    counts[index] += 1;
  }
  moments_.push_back(second_moments<Scalar>(prior_feature, options, signs));
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
  const bool is_bilinear = options.shape.left_dim > 0;
  std::vector<Unknown> unknown;
  for (const Index group : missing) {
    const auto index = static_cast<std::size_t>(group);
    unknown.push_back({&moments_[index], is_right_[index]});
  }
  rows.for_each_entry(i, [&](Index j, Scalar x) {
    if (x == 0 || filter.feature_posterior(j).scale > 0) return;
    const Index group = group_of(j, options);
    unknown.push_back({group < 0 ? &moments_.back() : &moments_[static_cast<std::size_t>(group)],
                       is_bilinear && j >= options.shape.left_dim});
  });
  if (unknown.empty()) return 0;

  const Index rank = options.shape.rank;
  Vector<double> projections[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  Vector<double> projection_variances[2] = {Vector<double>::Zero(rank), Vector<double>::Zero(rank)};
  rows.for_each_entry(i, [&](Index j, Scalar value) {
    const auto x = static_cast<double>(value);
    const FeaturePosterior<Scalar> feature = filter.feature_posterior(j);
    const int side = is_bilinear && j >= options.shape.left_dim ? 1 : 0;
    for (Index c = 0; c < rank; ++c) {
      projections[side][c] += static_cast<double>(feature.factors[c]) * x;
      projection_variances[side][c] += static_cast<double>(feature.factor_variances[c]) * x * x;
    }
  });
  const std::vector<Scalar> all_signs = filter.factor_signs();
  const Vector<double> signs = Eigen::Map<const Vector<Scalar>>(all_signs.data(), rank).template cast<double>();
  const double multiplicity = is_bilinear ? 1 : 2;  // symmetric: M_ij and M_ji
  double variance = 0;
  for (std::size_t a = 0; a < unknown.size(); ++a) {
    const Matrix<double>& moments = *unknown[a].moments;
    const int other = is_bilinear && !unknown[a].is_right ? 1 : 0;
    Vector<double> gradient(rank + 1);
    gradient << 1, multiplicity * signs.cwiseProduct(projections[other]);
    variance += gradient.dot(moments * gradient) +
                multiplicity * multiplicity * moments.diagonal().tail(rank).dot(projection_variances[other]);
    // Interaction of two unknown features with independent factors a and b: E[(multiplicity a'diag(signs) b)^2].
    for (std::size_t b = 0; b < a; ++b) {
      if (is_bilinear && unknown[a].is_right == unknown[b].is_right) continue;
      const auto a_moments = moments.bottomRightCorner(rank, rank);
      const auto b_moments = unknown[b].moments->bottomRightCorner(rank, rank);
      variance += multiplicity * multiplicity * signs.dot(a_moments.cwiseProduct(b_moments) * signs);
    }
  }
  return variance;
}

template void predict_with_unknown_features(const KalmanFilter<float>&, const Rows<float>&,
                                            const std::function<void(Index, std::vector<Index>&)>&, std::span<float>,
                                            std::span<float>);
template void predict_with_unknown_features(const KalmanFilter<double>&, const Rows<double>&,
                                            const std::function<void(Index, std::vector<Index>&)>&, std::span<double>,
                                            std::span<double>);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<float>&, std::vector<Index>, Index);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<double>&, std::vector<Index>, Index);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<float>&);
template UnknownFeatures::UnknownFeatures(const KalmanFilter<double>&);
template double UnknownFeatures::variance(const KalmanFilter<float>&, const Rows<float>&, Index,
                                          std::span<const Index>) const;
template double UnknownFeatures::variance(const KalmanFilter<double>&, const Rows<double>&, Index,
                                          std::span<const Index>) const;

}  // namespace dyad
