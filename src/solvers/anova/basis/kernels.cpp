#include "solvers/anova/basis/kernels.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

/// Directions of a kernel with an eigenvalue below this share of the largest one are dropped: their contribution is
/// below the rounding error of the sums.
constexpr double min_eigenvalue_share = 1e-9;

/// U with U U' = K, columns by decreasing eigenvalue.
Matrix<double> factorize_kernel(const Matrix<double>& K) {
  const SymmetricEigen<double> eigen = symmetric_eigen(K);
  const double largest = eigen.values[eigen.values.size() - 1];
  Index rank = 0;
  while (rank < K.rows() && eigen.values[K.rows() - 1 - rank] > min_eigenvalue_share * largest) ++rank;
  Matrix<double> factor(K.rows(), rank);
  for (Index c = 0; c < rank; ++c)
    factor.col(c) = std::sqrt(eigen.values[K.rows() - 1 - c]) * eigen.vectors.col(K.rows() - 1 - c);
  return factor;
}

/// Factor of pinv(D'D), where D is the matrix of second differences of `count` knots.
Matrix<double> smooth_factor(Index count) {
  Matrix<double> D = Matrix<double>::Zero(count - 2, count);
  for (Index i = 0; i + 2 < count; ++i) {
    D(i, i) = 1;
    D(i, i + 1) = -2;
    D(i, i + 2) = 1;
  }
  const SymmetricEigen<double> eigen = symmetric_eigen<double>(D * D.transpose());
  // pinv(D) = D'(D D')^-1; with D D' = V diag(s) V', pinv(D'D) = (D'V / s)(D'V / s)'
  Matrix<double> factor(count, count - 2);
  for (Index c = 0; c < count - 2; ++c) factor.col(c) = D.transpose() * eigen.vectors.col(c) / eigen.values[c];
  return factor;
}

/// Adds rows of zeros for the tails and for missing values.
Matrix<double> padded(const Matrix<double>& factor, const AnovaAxis& axis) {
  Matrix<double> result = Matrix<double>::Zero(axis.size(), factor.cols());
  result.middleRows(axis.first_knot(), factor.rows()) = factor;
  return result;
}

}  // namespace

AxisKernels::AxisKernels(const AnovaAxis& axis, const Vector<double>& means) {
  const Index size = axis.size();
  const auto knots = static_cast<Index>(axis.knots.size());
  if (!axis.is_categorical && knots >= 2) {
    Vector<double> values = as_vector(axis.knots);
    values.array() -= values.mean();
    Matrix<double> line = padded(values, axis);
    for (const Index tail : {Index{0}, knots + 1})
      if (axis.is_tail(tail)) line(tail, 0) = 1;  // the slope of the line
    set_factor(AxisKernel::linear, std::move(line), axis, means);
    const Vector<double> ranks = Vector<double>::LinSpaced(knots, 0, 1);
    if (knots > 2) {
      set_factor(AxisKernel::rank, padded(ranks, axis), axis, means);
      set_factor(AxisKernel::smooth, padded(smooth_factor(knots), axis), axis, means);
      Matrix<double> rough(knots, knots);
      for (Index i = 0; i < knots; ++i)
        for (Index j = 0; j < knots; ++j) rough(i, j) = std::min(ranks[i], ranks[j]);
      set_factor(AxisKernel::rough, padded(factorize_kernel(rough), axis), axis, means);
      Vector<double> squares = values.cwiseAbs2();
      set_factor(AxisKernel::square, padded(squares, axis), axis, means);
    }
  }
  if (axis.is_categorical || axis.has_missing_level || (axis.is_discrete && knots > 2)) {
    Matrix<double> white = Matrix<double>::Identity(size, size);
    for (Index function = 0; function < size; ++function)
      if (axis.is_tail(function)) white(function, function) = 0;
    set_factor(AxisKernel::white, std::move(white), axis, means);
  }
  if (has(AxisKernel::smooth) && has(AxisKernel::linear)) {
    const auto outer = [&](AxisKernel kernel) {
      const Matrix<double>& U = *factor(kernel);
      return Matrix<double>(U * U.transpose() / 3);
    };
    set_factor(AxisKernel::mixed,
               factorize_kernel(outer(AxisKernel::linear) + outer(AxisKernel::rank) + outer(AxisKernel::smooth)), axis,
               means);
  } else if (has(AxisKernel::linear)) {
    factors_[static_cast<std::size_t>(AxisKernel::mixed)] = factor(AxisKernel::linear);
  }
}

void AxisKernels::set_factor(AxisKernel kernel, Matrix<double> U, const AnovaAxis& axis, const Vector<double>& means) {
  const double total = means.sum();
  if (!(total > 0)) return;
  const Matrix<double> mean = means.transpose() * U / total;
  for (Index function = 0; function < U.rows(); ++function)
    if (!axis.is_tail(function)) U.row(function) -= mean;
  const double variance = means.dot(U.rowwise().squaredNorm()) / total;
  // a kernel that is constant over the rows has no variance
  constexpr double min_variance = 1e-9;
  if (!(variance > min_variance)) return;
  U /= std::sqrt(variance);
  std::vector<Index> order(static_cast<std::size_t>(U.cols()));
  std::iota(order.begin(), order.end(), Index{0});
  const Vector<double> norms = U.colwise().squaredNorm();
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return norms[a] > norms[b]; });
  Matrix<double> sorted(U.rows(), U.cols());
  Index kept = 0;
  for (const Index column : order)
    if (norms[column] > min_eigenvalue_share * norms[order.front()]) sorted.col(kept++) = U.col(column);
  factors_[static_cast<std::size_t>(kernel)] = sorted.leftCols(kept);
}

std::vector<BlockKernel> main_kernels(const AxisKernels& axis) {
  std::vector<BlockKernel> kernels;
  for (const AxisKernel kernel :
       {AxisKernel::linear, AxisKernel::rank, AxisKernel::smooth, AxisKernel::rough, AxisKernel::white})
    if (axis.has(kernel)) kernels.push_back({kernel, std::nullopt});
  return kernels;
}

std::vector<BlockKernel> pair_kernels(const AxisKernels& first, const AxisKernels& second) {
  std::vector<BlockKernel> kernels;
  const auto add = [&](AxisKernel a, AxisKernel b) {
    if (first.has(a) && second.has(b)) kernels.push_back({a, b});
  };
  add(AxisKernel::linear, AxisKernel::linear);
  // without curves on both axes, mixed x mixed equals linear x linear
  if (first.has(AxisKernel::rough) || second.has(AxisKernel::rough)) add(AxisKernel::mixed, AxisKernel::mixed);
  add(AxisKernel::rough, AxisKernel::rough);
  add(AxisKernel::white, AxisKernel::white);
  add(AxisKernel::white, AxisKernel::mixed);
  add(AxisKernel::mixed, AxisKernel::white);
  return kernels;
}

Matrix<double> pair_factor(const Matrix<double>& first, const Matrix<double>& second, Index max_columns) {
  const Vector<double> first_norms = first.colwise().squaredNorm();
  const Vector<double> second_norms = second.colwise().squaredNorm();
  std::vector<std::pair<Index, Index>> order;
  for (Index a = 0; a < first.cols(); ++a)
    for (Index b = 0; b < second.cols(); ++b) order.emplace_back(a, b);
  const auto norm = [&](const std::pair<Index, Index>& p) { return first_norms[p.first] * second_norms[p.second]; };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return norm(a) > norm(b); });
  order.resize(std::min(order.size(), static_cast<std::size_t>(max_columns)));
  Matrix<double> factor(first.rows() * second.rows(), static_cast<Index>(order.size()));
  for (Index c = 0; c < factor.cols(); ++c) {
    const auto& [a, b] = order[static_cast<std::size_t>(c)];
    for (Index i = 0; i < first.rows(); ++i)
      factor.col(c).segment(i * second.rows(), second.rows()) = first(i, a) * second.col(b);
  }
  return factor;
}

}  // namespace dyad
