#include "solvers/gauss_newton/moment_start.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "linalg/decompositions.h"
#include "model/sides.h"

namespace dyad {
namespace {

/// Weighted deviations of the clipped targets from their mean, for weights of mean 1.
Vector<double> clipped_targets(const ObservedRows& rows, double& mean) {
  constexpr double tail = 0.02;
  std::vector<std::pair<double, double>> sorted;
  double total = 0;
  for (Index i = 0; i < rows.count(); ++i) {
    const double weight = rows.weights()[i];
    if (weight > 0) sorted.emplace_back(rows.targets()[i], weight);
    total += weight;
  }
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    double left = std::floor(share * (total - 1));
    for (const auto& [target, weight] : sorted) {
      left -= weight;
      if (left < 0) return target;
    }
    return sorted.empty() ? 0.0 : sorted.back().first;
  };
  const double low = quantile(tail);
  const double high = quantile(1 - tail);
  const Vector<double> y = rows.targets().cwiseMax(low).cwiseMin(high);
  const Vector<double>& weight = rows.weights();
  const double all = std::max(weight.sum(), 1e-30);
  mean = weight.dot(y) / all;
  const double scale = static_cast<double>(rows.count()) / all;
  return (scale * weight.array() * (y.array() - mean)).matrix();
}

/// The matrix of second moments, sum_i r_i x_i z_i' / n. Two sides: [[0, H], [H', 0]] of them.
class MomentOperator {
 public:
  MomentOperator(const ObservedRows& rows, Vector<double> r, const NewtonOptions& options, ThreadPool& pool)
      : rows_(rows), r_(std::move(r)), sides_(rows.dim(), options.shape.left_dim), pool_(pool) {
    if (options.shape.diagonal == Diagonal::tied) return;
    diagonal_.setZero(rows.dim());
    rows_.X().add_transposed_squares({0, rows.count()}, r_.data(), diagonal_.data());
  }

  [[nodiscard]] Tall<double> times(const Tall<double>& Z) const {
    std::vector<Tall<double>> sums(static_cast<std::size_t>(pool_.count()));
    const Index columns = Z.cols();
    for_each_share(rows_.X(), pool_, [&](int worker, Share share) {
      Tall<double>& sum = sums[static_cast<std::size_t>(worker)];
      sum.setZero(rows_.dim(), columns);
      Tall<double> projected(share.count, columns);
      const auto add_product = [&](Share from, Share to) {
        rows_.X().multiply(share, from, Z.data() + from.first * columns, columns, projected.data());
        projected = r_.segment(share.first, share.count).asDiagonal() * projected;
        rows_.X().add_transposed_product(share, to, projected.data(), columns, sum.data() + to.first * columns);
      };
      add_product(sides_.right_columns(), sides_.left_columns());
      if (sides_.two()) add_product(sides_.left_columns(), sides_.right_columns());
    });
    Tall<double> result = Tall<double>::Zero(Z.rows(), columns);
    for (const Tall<double>& sum : sums)
      if (sum.size() > 0) result += sum;
    if (diagonal_.size() > 0) result -= diagonal_.asDiagonal() * Z;
    return result / static_cast<double>(rows_.count() * (sides_.two() ? 1 : 2));
  }

 private:
  ObservedRows rows_;
  Vector<double> r_;
  Sides sides_;
  ThreadPool& pool_;
  Vector<double> diagonal_;
};

}  // namespace

Index MomentStart::positive_count(Index rank) const {
  const Index strongest = std::min(rank, strengths.size());
  return (strengths.head(strongest).array() > 0).count();
}

SignedFactors<double> MomentStart::take(const NewtonOptions& options, Index positive) const {
  SignedFactors<double> start;
  start.left_dim = options.shape.left_dim;
  start.diagonal = options.shape.diagonal;
  start.intercept = options.shape.intercept ? mean : 0;
  start.weights = weights;
  if (options.shape.diagonal == Diagonal::free) start.squares.setZero(weights.size());
  start.signs.resize(options.shape.rank);
  start.A.resize(weights.size(), options.shape.rank);
  std::vector<Index> order(static_cast<std::size_t>(strengths.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return strengths[i] > strengths[j]; });
  const double least = 0.1 * strengths.cwiseAbs().maxCoeff();
  for (Index c = 0; c < options.shape.rank; ++c) {
    start.signs[c] = c < positive ? 1 : -1;
    const Index place = c < positive ? c : strengths.size() - 1 - (c - positive);
    const Index direction = order[static_cast<std::size_t>(place)];
    start.A.col(c) = std::sqrt(std::max(start.signs[c] * strengths[direction], least)) * directions.col(direction);
  }
  return start;
}

MomentStart moment_start(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool) {
  MomentStart start;
  const Sides sides(rows.dim(), options.shape.left_dim);
  const Vector<double> r = clipped_targets(rows, start.mean);
  start.weights.setZero(rows.dim());
  if (options.shape.linear) {
    rows.X().add_transposed_product({0, rows.count()}, {0, rows.dim()}, r.data(), 1, start.weights.data());
    start.weights /= static_cast<double>(rows.count());
  }
  const MomentOperator H(rows, r, options, pool);
  const Index smallest_side = sides.two() ? std::min(sides.left_count(), sides.right_count()) : rows.dim();
  const Index columns = std::min(2 * options.shape.rank, smallest_side);
  Random random(options.seed, start_stream);
  Tall<double> Z = sides.orthonormal_sides<double>(random_normal<double>(random, rows.dim(), columns));
  constexpr int sweeps = 15;
  for (int sweep = 0; sweep < sweeps; ++sweep) Z = sides.orthonormal_sides<double>(H.times(Z));
  const Tall<double> HZ = H.times(Z);
  start.directions.resize(rows.dim(), columns);
  if (sides.two()) {
    const Small<double> core = sides.left(Z).transpose() * sides.left(HZ);
    const SingularValues<double> svd = singular_values(core);
    start.directions << sides.left(Z) * svd.left, sides.right(Z) * svd.right;
    start.strengths = svd.values;
    return start;
  }
  const Small<double> core = Z.transpose() * HZ;
  const SymmetricEigen<double> eigen = symmetric_eigen(core);
  std::vector<Index> order(static_cast<std::size_t>(columns));
  std::iota(order.begin(), order.end(), Index(0));
  const Vector<double>& values = eigen.values;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return std::abs(values[i]) > std::abs(values[j]); });
  start.strengths.resize(columns);
  for (Index c = 0; c < columns; ++c) {
    const Index i = order[static_cast<std::size_t>(c)];
    start.strengths[c] = values[i];
    start.directions.col(c) = Z * eigen.vectors.col(i);
  }
  return start;
}

}  // namespace dyad
