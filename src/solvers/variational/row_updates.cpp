#include <algorithm>
#include <cmath>
#include <vector>

#include "solvers/variational/sweeps.h"

namespace dyad {
namespace {

/// Prior precision of the intercept relative to the total weight. It has a negligible effect on the intercept, and
/// keeps the bound finite. Sensitivity: docs/constants.md.
constexpr double intercept_prior_ratio = 1e-12;

/// Distance in rows at which the target of a row is prefetched.
constexpr Index target_prefetch_distance = 16;

}  // namespace

template <typename Scalar>
template <typename Visit>
double VariationalSweeps<Scalar>::sum_over_rows(Visit&& visit) const {
  constexpr Index block_rows = 4096;  // rows per partial sum; fixed, so that results do not depend on the threads;
                                      // sensitivity: docs/constants.md
  std::vector<double> sums(at((rows_.count + block_rows - 1) / block_rows));
  pool_.split(static_cast<Index>(sums.size()), [&](int, IndexRange share) {
    for (Index block = share.first; block < share.first + share.count; ++block) {
      const Index first = block * block_rows;
      sums[at(block)] = visit(first, std::min(block_rows, rows_.count - first));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

/// Prediction of a row with at most two entries x and z. A missing entry is read from the zero record of feature `dim`.
/// The factors of the two features have means m and n and variances u and v. The interaction 2 x z sum_c s_c a_c b_c
/// has the mean 2 x z sum_c s_c m_c n_c and the variance 4 x^2 z^2 sum_c (m_c^2 v_c + n_c^2 u_c + u_c v_c).
template <typename Scalar>
inline typename VariationalSweeps<Scalar>::PredictionMoments VariationalSweeps<Scalar>::predict_pair(Index i) const {
  const Index first = rows_.first_entry(i);
  const Index count = rows_.first_entry(i + 1) - first;
  const double* left = record(count > 0 ? rows_.row_features[at(first)] : rows_.dim);
  const double* right = record(count > 1 ? rows_.row_features[at(first + 1)] : rows_.dim);
  const double x = count > 0 ? rows_.row_values[at(first)] : 0;
  const double z = count > 1 ? rows_.row_values[at(first + 1)] : 0;
  // The second features of pairs are scattered in memory. The first features are sorted.
  // The second entry of the pair 8 rows ahead. Sensitivity: docs/constants.md.
  constexpr std::size_t prefetch_entries = 17;
  if (const std::size_t ahead = at(first) + prefetch_entries; ahead < rows_.row_features.size()) {
    prefetch_range(record(rows_.row_features[ahead]), 2 * stride_);
  }
  Simd mean(0.0);
  Simd variance(0.0);
  for (Index c = 0; c < width_; c += Simd::count) {
    const Simd m(left + c);
    const Simd n(right + c);
    const Simd u(left + width_ + c);
    const Simd v(right + width_ + c);
    mean = mean + Simd(signs_.data() + c) * m * n;
    variance = variance + m * m * v + n * n * u + u * v;
  }
  const auto linear = [&](const double* feature, double value) {
    return value * (feature[mean_offset(weight_index())] + value * feature[mean_offset(square_index())]);
  };
  const auto linear_variance = [&](const double* feature, double value) {
    return value * value *
           (feature[variance_offset(weight_index())] + value * value * feature[variance_offset(square_index())]);
  };
  const double xz = x * z;
  return {intercept_ + linear(left, x) + linear(right, z) + 2 * xz * mean.sum(),
          intercept_variance_ + linear_variance(left, x) + linear_variance(right, z) + 4 * xz * xz * variance.sum()};
}

/// Prediction of a row with any number of entries. Writes to `sums`, per factor, the sums over the entries of
/// m x, v x^2, m v x^3, (m x)^2, (m x)^2 v x^2 and (v x^2)^2.
/// With q = sum m x, the mean of sum_{i != j} a_i x_i a_j x_j is q^2 - sum (m x)^2.
/// With u = sum v x^2, its variance is
/// 4 (q^2 u - 2 q sum m v x^3 + sum (m x)^2 v x^2) + 2 (u^2 - sum (v x^2)^2).
template <typename Scalar>
inline typename VariationalSweeps<Scalar>::PredictionMoments VariationalSweeps<Scalar>::predict_row(
    Index i, double* sums) const {
  const Index width = width_;
  std::fill(sums, sums + 6 * width, 0.0);
  PredictionMoments prediction{intercept_, intercept_variance_};
  for (Index e = rows_.first_entry(i); e < rows_.first_entry(i + 1); ++e) {
    const double x = rows_.row_values[at(e)];
    const double* feature = record(rows_.row_features[at(e)]);
    const double* m = feature;
    const double* v = feature + width;
    const Simd simd_x(x);
    for (Index c = 0; c < width; c += Simd::count) {
      const Simd mx = Simd(m + c) * simd_x;
      const Simd vxx = Simd(v + c) * simd_x * simd_x;
      mx.add_to(sums + c);
      vxx.add_to(sums + width + c);
      (mx * vxx).add_to(sums + 2 * width + c);
      (mx * mx).add_to(sums + 3 * width + c);
      (mx * mx * vxx).add_to(sums + 4 * width + c);
      (vxx * vxx).add_to(sums + 5 * width + c);
    }
    prediction.mean += x * (feature[mean_offset(weight_index())] + x * feature[mean_offset(square_index())]);
    prediction.variance +=
        x * x * (feature[variance_offset(weight_index())] + x * x * feature[variance_offset(square_index())]);
  }
  Simd mean(0.0);
  Simd variance(0.0);
  for (Index c = 0; c < width; c += Simd::count) {
    const Simd q(sums + c);
    const Simd u(sums + width + c);
    const Simd two(2.0);
    mean = mean + Simd(signs_.data() + c) * (q * q - Simd(sums + 3 * width + c));
    variance = variance + two * (two * (q * q * u - two * q * Simd(sums + 2 * width + c) + Simd(sums + 4 * width + c)) +
                                 u * u - Simd(sums + 5 * width + c));
  }
  prediction.mean += mean.sum();
  prediction.variance = std::max(0.0, prediction.variance + variance.sum());
  return prediction;
}

template <typename Scalar>
DYAD_TARGET_CLONES double VariationalSweeps<Scalar>::update_block_residuals(Index first, Index count) {
  Values sums(at(6 * width_));
  double squares = 0;
  for (Index i = first; i < first + count; ++i) {
    rows_.prefetch_row(i + target_prefetch_distance);
    const PredictionMoments prediction = rows_.has_long_rows ? predict_row(i, sums.data()) : predict_pair(i);
    if (rows_.has_long_rows) std::copy(sums.begin(), sums.begin() + 3 * width_, row_sums_.begin() + i * 3 * width_);
    const Likelihood::QuadraticBound bound = likelihood_->bound(rows_.target(i), prediction.mean, prediction.variance);
    if (!bound_points_.empty()) bound_points_[at(i)] = bound.point;
    const double residual = bound.target - prediction.mean;
    residuals_[at(i)] = residual;
    row_precisions_.set(at(i), rows_.weight(i) * bound.precision);
    squares += rows_.weight(i) * (residual * residual + prediction.variance);
  }
  return squares;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::update_residuals() {
  const double squares = sum_over_rows([&](Index first, Index count) { return update_block_residuals(first, count); });
  if (likelihood_->has_noise_variance() && squares > 0) noise_precision_ = total_weight_ / squares;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::update_intercept() {
  if (!(intercept_variance_ > 0)) return;
  const double rho = sum_over_rows([&](Index first, Index count) {
    double sum = 0;
    for (Index i = first; i < first + count; ++i) sum += row_precisions_[at(i)];
    return sum;
  });
  const double gradient = sum_over_rows([&](Index first, Index count) {
    double sum = 0;
    for (Index i = first; i < first + count; ++i) sum += row_precisions_[at(i)] * residuals_[at(i)];
    return sum;
  });
  const double prior = intercept_prior_ratio * total_weight_;
  const double precision = prior + noise_precision_ * rho;
  const double step = (noise_precision_ * gradient - prior * intercept_) / precision;
  intercept_ += step;
  intercept_variance_ = 1 / precision;
  for (double& residual : residuals_) residual -= step;
}

template <typename Scalar>
DYAD_TARGET_CLONES double VariationalSweeps<Scalar>::block_bound(Index first, Index count) const {
  Values sums(at(6 * width_));
  double sum = 0;
  for (Index i = first; i < first + count; ++i) {
    rows_.prefetch_row(i + target_prefetch_distance);
    const PredictionMoments prediction = rows_.has_long_rows ? predict_row(i, sums.data()) : predict_pair(i);
    const double point = bound_points_.empty() ? 0 : bound_points_[at(i)];
    sum += rows_.weight(i) *
           likelihood_->bound_value(rows_.target(i), point, prediction.mean, prediction.variance, noise_precision_);
  }
  return sum;
}

template <typename Scalar>
double VariationalSweeps<Scalar>::bound() const {
  double sum = sum_over_rows([&](Index first, Index count) { return block_bound(first, count); });
  // Minus the Kullback-Leibler divergence of a posterior N(mean, variance) from its prior N(0, 1 / precision).
  const auto add_prior = [&](double precision, double mean, double variance) {
    sum += (std::log(precision * variance) - precision * (mean * mean + variance) + 1) / 2;
  };
  if (intercept_variance_ > 0) add_prior(intercept_prior_ratio * total_weight_, intercept_, intercept_variance_);
  for (Index j = 0; j < rows_.dim; ++j)
    for (const Index a : parameters_)
      if (rows_.occurrence_count(j) > 0)
        add_prior(priors_[at(a)], record(j)[mean_offset(a)], record(j)[variance_offset(a)]);
  return sum;
}

template void VariationalSweeps<float>::update_residuals();
template void VariationalSweeps<float>::update_intercept();
template double VariationalSweeps<float>::bound() const;
template void VariationalSweeps<double>::update_residuals();
template void VariationalSweeps<double>::update_intercept();
template double VariationalSweeps<double>::bound() const;

}  // namespace dyad
