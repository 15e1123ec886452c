#include "newton/start.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/decompositions.h"
#include "base/random.h"
#include "model/sides.h"
#include "rows/products.h"

namespace dyad {
namespace {

/// The targets' weighted deviations from their mean, within the usual.
template <typename Scalar>
Vector<Scalar> clipped_targets(const Rows<Scalar>& rows, Scalar& mean) {
  constexpr double tail = 0.02;
  std::vector<std::pair<Scalar, double>> sorted;
  double total = 0;
  for (Index i = 0; i < rows.count(); ++i) {
    const auto weight = static_cast<double>(rows.weight(i));
    if (weight > 0) sorted.emplace_back(rows.targets()[static_cast<std::size_t>(i)], weight);
    total += weight;
  }
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    double left = std::floor(share * (total - 1));
    for (const auto& [target, weight] : sorted) {
      left -= weight;
      if (left < 0) return target;
    }
    return sorted.empty() ? Scalar(0) : sorted.back().first;
  };
  const Scalar low = quantile(tail);
  const Scalar high = quantile(1 - tail);
  Vector<Scalar> y(rows.count());
  Vector<Scalar> weight(rows.count());
  for (Index i = 0; i < rows.count(); ++i) {
    y[i] = std::clamp(rows.targets()[static_cast<std::size_t>(i)], low, high);
    weight[i] = rows.weight(i);
  }
  const Scalar all = std::max(weight.sum(), Scalar(1e-30));
  mean = weight.dot(y) / all;
  const Scalar scale = static_cast<Scalar>(rows.count()) / all;
  return (scale * weight.array() * (y.array() - mean)).matrix();
}

/// sum_i r_i x_i (z_i' Z) / n, and its transpose where there are two sides.
template <typename Scalar>
class MomentOperator {
 public:
  MomentOperator(const Rows<Scalar>& rows, Vector<Scalar> r, const NewtonOptions& options, Workers& workers)
      : rows_(rows), r_(std::move(r)), sides_(rows.dim(), options.shape.left_dim), workers_(workers) {
    if (options.shape.diagonal == Diagonal::tied) return;
    diagonal_.setZero(rows.dim());
    add_back_projected_squares(rows_, r_.data(), 1, diagonal_.data());
  }

  [[nodiscard]] Tall<Scalar> times(const Tall<Scalar>& Z) const {
    std::vector<Tall<Scalar>> sums(static_cast<std::size_t>(workers_.count()));
    const Index columns = Z.cols();
    workers_.split(rows_.count(), [&](int worker, Share share) {
      const Rows<Scalar> part = rows_.slice(share.first, share.count);
      Tall<Scalar>& sum = sums[static_cast<std::size_t>(worker)];
      sum.setZero(rows_.dim(), columns);
      Tall<Scalar> projected(share.count, columns);
      const auto through = [&](const Rows<Scalar>& from, const Scalar* with, const Rows<Scalar>& to, Scalar* out) {
        project(from, with, columns, projected.data());
        projected = r_.segment(share.first, share.count).asDiagonal() * projected;
        add_back_projection(to, projected.data(), columns, out);
      };
      const Index right_first = sides_.right_first() * columns;
      through(sides_.right(part), Z.data() + right_first, sides_.left(part), sum.data());
      if (sides_.two()) through(sides_.left(part), Z.data(), sides_.right(part), sum.data() + right_first);
    });
    Tall<Scalar> result = Tall<Scalar>::Zero(Z.rows(), columns);
    for (const Tall<Scalar>& sum : sums)
      if (sum.size() > 0) result += sum;
    if (diagonal_.size() > 0) result -= diagonal_.asDiagonal() * Z;
    return result / static_cast<Scalar>(rows_.count() * (sides_.two() ? 1 : 2));
  }

 private:
  Rows<Scalar> rows_;
  Vector<Scalar> r_;
  Sides sides_;
  Workers& workers_;
  Vector<Scalar> diagonal_;
};

}  // namespace

template <typename Scalar>
Index MomentStart<Scalar>::positive_count(Index rank) const {
  const Index strongest = std::min(rank, strengths.size());
  return (strengths.head(strongest).array() > 0).count();
}

template <typename Scalar>
SignedFactors<Scalar> MomentStart<Scalar>::take(const NewtonOptions& options, Index positive) const {
  SignedFactors<Scalar> start;
  start.left_dim = options.shape.left_dim;
  start.diagonal = options.shape.diagonal;
  start.intercept = options.shape.intercept ? mean : Scalar(0);
  start.weights = weights;
  if (options.shape.diagonal == Diagonal::free) start.squares.setZero(weights.size());
  start.signs.resize(options.shape.rank);
  start.A.resize(weights.size(), options.shape.rank);
  std::vector<Index> order(static_cast<std::size_t>(strengths.size()));
  std::iota(order.begin(), order.end(), Index(0));
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return strengths[i] > strengths[j]; });
  const Scalar least = Scalar(0.1) * strengths.cwiseAbs().maxCoeff();
  for (Index c = 0; c < options.shape.rank; ++c) {
    start.signs[c] = c < positive ? Scalar(1) : Scalar(-1);
    const Index place = c < positive ? c : strengths.size() - 1 - (c - positive);
    const Index direction = order[static_cast<std::size_t>(place)];
    start.A.col(c) = std::sqrt(std::max(start.signs[c] * strengths[direction], least)) * directions.col(direction);
  }
  return start;
}

template <typename Scalar>
MomentStart<Scalar> moment_start(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers) {
  MomentStart<Scalar> start;
  const Sides sides(rows.dim(), options.shape.left_dim);
  const Vector<Scalar> r = clipped_targets(rows, start.mean);
  start.weights.setZero(rows.dim());
  if (options.shape.linear) {
    add_back_projection(rows, r.data(), 1, start.weights.data());
    start.weights /= static_cast<Scalar>(rows.count());
  }
  const MomentOperator<Scalar> H(rows, r, options, workers);
  const Index smallest_side = sides.two() ? std::min(sides.left_count(), sides.right_count()) : rows.dim();
  const Index columns = std::min(2 * options.shape.rank, smallest_side);
  Random random(options.seed, start_stream);
  Tall<Scalar> Z = sides.orthonormal_sides<Scalar>(random_normal<Scalar>(random, rows.dim(), columns));
  constexpr int sweeps = 15;
  for (int sweep = 0; sweep < sweeps; ++sweep) Z = sides.orthonormal_sides<Scalar>(H.times(Z));
  const Tall<Scalar> HZ = H.times(Z);
  start.directions.resize(rows.dim(), columns);
  if (sides.two()) {
    const Small<Scalar> core = sides.left(Z).transpose() * sides.left(HZ);
    const SingularValues<Scalar> svd = singular_values(core);
    start.directions << sides.left(Z) * svd.left, sides.right(Z) * svd.right;
    start.strengths = svd.values;
    return start;
  }
  const Small<Scalar> core = Z.transpose() * HZ;
  const SymmetricEigen<Scalar> eigen = symmetric_eigen(core);
  std::vector<Index> order(static_cast<std::size_t>(columns));
  std::iota(order.begin(), order.end(), Index(0));
  const Vector<Scalar>& values = eigen.values;
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

template struct MomentStart<float>;
template struct MomentStart<double>;
template MomentStart<float> moment_start(const Rows<float>&, const NewtonOptions&, Workers&);
template MomentStart<double> moment_start(const Rows<double>&, const NewtonOptions&, Workers&);

}  // namespace dyad
