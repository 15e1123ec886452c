#include "solvers/gauss_newton/moment_start.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "model/sides.h"

namespace dyad {
namespace {

/// Deviations of the clipped targets from their mean, times the row weights, which are scaled to mean 1. Sets `mean`.
Vector<double> compute_clipped_deviations(const ObservedRows& rows, double& mean) {
  // Share of the weight that is clipped at either end. Sensitivity: docs/constants.md.
  constexpr double clipped_tail = 0.02;
  std::vector<std::pair<double, double>> sorted;
  double total = 0;
  for (Index i = 0; i < rows.count(); ++i) {
    const double weight = rows.weights()[i];
    if (weight > 0) sorted.emplace_back(rows.targets()[i], weight);
    total += weight;
  }
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    double remaining = std::floor(share * (total - 1));
    for (const auto& [target, weight] : sorted) {
      remaining -= weight;
      if (remaining < 0) return target;
    }
    return sorted.empty() ? 0.0 : sorted.back().first;
  };
  const double low = quantile(clipped_tail);
  const double high = quantile(1 - clipped_tail);
  const Vector<double> y = rows.targets().cwiseMax(low).cwiseMin(high);
  const Vector<double>& weight = rows.weights();
  constexpr double min_total_weight = 1e-30;  // prevents a division by 0 if all weights are 0
  const double total_weight = std::max(weight.sum(), min_total_weight);
  mean = weight.dot(y) / total_weight;
  const double scale = static_cast<double>(rows.count()) / total_weight;
  return (scale * weight.array() * (y.array() - mean)).matrix();
}

/// Operator of the moment estimate of M for n rows. Symmetric models: H = sum_i r_i x_i x_i' / (2n), without its
/// diagonal unless the diagonal of M is tied. Bilinear models: [[0, H], [H', 0]] with H = sum_i r_i x_i z_i' / n.
class MomentOperator {
 public:
  MomentOperator(const ObservedRows& rows, Vector<double> r, const NewtonOptions& options, ThreadPool& pool)
      : rows_(rows), r_(std::move(r)), sides_(rows.dim(), options.shape.left_dim), pool_(pool) {
    if (options.shape.diagonal == Diagonal::tied) return;
    diagonal_.setZero(rows.dim());
    rows_.X().add_transposed_squares({0, rows.count()}, r_.data(), diagonal_.data());
  }

  [[nodiscard]] RowMajorMatrix<double> multiply(const RowMajorMatrix<double>& Z) const {
    std::vector<RowMajorMatrix<double>> sums(static_cast<std::size_t>(pool_.count()));
    const Index columns = Z.cols();
    for_each_row_range(rows_.X(), pool_, [&](int worker, IndexRange share) {
      RowMajorMatrix<double>& sum = sums[static_cast<std::size_t>(worker)];
      sum.setZero(rows_.dim(), columns);
      RowMajorMatrix<double> projected(share.count, columns);
      const auto add_product = [&](IndexRange from, IndexRange to) {
        rows_.X().multiply(share, from, Z.data() + from.first * columns, columns, projected.data());
        projected = r_.segment(share.first, share.count).asDiagonal() * projected;
        rows_.X().add_transposed_product(share, to, projected.data(), columns, sum.data() + to.first * columns);
      };
      add_product(sides_.right_columns(), sides_.left_columns());
      if (sides_.is_bilinear()) add_product(sides_.left_columns(), sides_.right_columns());
    });
    RowMajorMatrix<double> result = RowMajorMatrix<double>::Zero(Z.rows(), columns);
    for (const RowMajorMatrix<double>& sum : sums)
      if (sum.size() > 0) result += sum;
    if (diagonal_.size() > 0) result -= diagonal_.asDiagonal() * Z;
    return result / static_cast<double>(rows_.count() * (sides_.is_bilinear() ? 1 : 2));
  }

 private:
  ObservedRows rows_;
  Vector<double> r_;
  Sides sides_;
  ThreadPool& pool_;
  Vector<double> diagonal_;  ///< sum_i r_i x_i^2; empty: the diagonal is part of H
};

}  // namespace

SignedFactors<double> MomentStart::to_parameters(const NewtonOptions& options) const {
  const bool has_one_sign = options.shape.positive || options.shape.is_bilinear();
  const Index positive = has_one_sign
                             ? options.shape.rank
                             : (spectrum.head(std::min(options.shape.rank, spectrum.size())).array() > 0).count();
  SignedFactors<double> start;
  start.left_dim = options.shape.left_dim;
  start.diagonal = options.shape.diagonal;
  start.intercept = options.shape.intercept ? target_mean : 0;
  start.weights = weights;
  if (options.shape.diagonal == Diagonal::free) start.squares.setZero(weights.size());
  start.signs.resize(options.shape.rank);
  start.A.resize(weights.size(), options.shape.rank);
  std::vector<Index> order(static_cast<std::size_t>(spectrum.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return spectrum[i] > spectrum[j]; });
  // Minimum eigenvalue of a factor, relative to the largest. The gradient with respect to a factor of 0 is 0.
  // Sensitivity: docs/constants.md.
  constexpr double min_relative_eigenvalue = 0.1;
  const double min_eigenvalue = min_relative_eigenvalue * spectrum.cwiseAbs().maxCoeff();
  for (Index c = 0; c < options.shape.rank; ++c) {
    start.signs[c] = c < positive ? 1 : -1;
    const Index position = c < positive ? c : spectrum.size() - 1 - (c - positive);
    const Index direction = order[static_cast<std::size_t>(position)];
    start.A.col(c) =
        std::sqrt(std::max(start.signs[c] * spectrum[direction], min_eigenvalue)) * directions.col(direction);
  }
  return start;
}

MomentStart compute_moment_start(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool) {
  MomentStart start;
  const Sides sides(rows.dim(), options.shape.left_dim);
  const Vector<double> r = compute_clipped_deviations(rows, start.target_mean);
  start.weights.setZero(rows.dim());
  if (options.shape.linear) {
    rows.X().add_transposed_product({0, rows.count()}, {0, rows.dim()}, r.data(), 1, start.weights.data());
    start.weights /= static_cast<double>(rows.count());
  }
  const MomentOperator H(rows, r, options, pool);
  const Index smallest_side = sides.is_bilinear() ? std::min(sides.left_count(), sides.right_count()) : rows.dim();
  const Index columns = std::min(2 * options.shape.rank, smallest_side);
  Random random(options.seed, start_stream);
  RowMajorMatrix<double> Z = sides.orthonormal_sides<double>(random_normal<double>(random, rows.dim(), columns));
  // Each iteration multiplies the error by the ratio of eigenvalue 2k + 1 to eigenvalue k, in absolute value.
  // Sensitivity: docs/constants.md.
  constexpr int subspace_iterations = 15;
  for (int i = 0; i < subspace_iterations; ++i) Z = sides.orthonormal_sides<double>(H.multiply(Z));
  const RowMajorMatrix<double> HZ = H.multiply(Z);
  start.directions.resize(rows.dim(), columns);
  if (sides.is_bilinear()) {
    const Matrix<double> core = sides.left(Z).transpose() * sides.left(HZ);
    const Svd<double> svd = compute_svd(core);
    start.directions << sides.left(Z) * svd.left, sides.right(Z) * svd.right;
    start.spectrum = svd.values;
    return start;
  }
  const Matrix<double> core = Z.transpose() * HZ;
  const SymmetricEigen<double> eigen = symmetric_eigen(core);
  std::vector<Index> order(static_cast<std::size_t>(columns));
  std::iota(order.begin(), order.end(), Index(0));
  const Vector<double>& values = eigen.values;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return std::abs(values[i]) > std::abs(values[j]); });
  start.spectrum.resize(columns);
  for (Index c = 0; c < columns; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    start.spectrum[c] = values[i];
    start.directions.col(c) = Z * eigen.vectors.col(i);
  }
  return start;
}

}  // namespace dyad
