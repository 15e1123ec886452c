#include "solvers/irls/weighted_regression.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dyad {

void RegressionCoefficients::set_zero(Index dim, Index rank, Index core_size, bool has_squares) {
  intercept = 0;
  features.setZero(dim, 1 + rank);
  squares.setZero(has_squares ? dim : 0);
  core.setZero(core_size);
}

void RegressionCoefficients::add(double scale, const RegressionCoefficients& other) {
  intercept += scale * other.intercept;
  features += scale * other.features;
  squares += scale * other.squares;
  core += scale * other.core;
}

void RegressionCoefficients::scale_and_add(double scale, const RegressionCoefficients& other) {
  intercept = other.intercept + scale * intercept;
  features = other.features + scale * features;
  squares = other.squares + scale * squares;
  core = other.core + scale * core;
}

double RegressionCoefficients::dot(const RegressionCoefficients& other) const {
  return intercept * other.intercept + features.cwiseProduct(other.features).sum() + squares.dot(other.squares) +
         core.dot(other.core);
}

void RegressionCoefficients::multiply_elementwise(const RegressionCoefficients& other) {
  intercept *= other.intercept;
  features = features.cwiseProduct(other.features);
  squares = squares.cwiseProduct(other.squares);
  core = core.cwiseProduct(other.core);
}

WeightedRegression::WeightedRegression(const ObservedRows& rows, const ModelShape& shape, ThreadPool& pool)
    : rows_(rows),
      shape_(shape),
      sides_(rows.dim(), shape.left_dim),
      pool_(pool),
      has_squares_(!shape.is_bilinear() && shape.diagonal != Diagonal::tied) {
  const auto squared_norms = [&](IndexRange columns) {
    Vector<double> selected = Vector<double>::Zero(rows.dim());
    selected.segment(columns.first, columns.count).setOnes();
    Vector<double> norms(rows.count());
    rows.X().multiply_squares({0, rows.count()}, selected.data(), norms.data());
    return norms;
  };
  row_scales_ = squared_norms(sides_.left_columns());
  row_scales_ = sides_.is_bilinear() ? Vector<double>(row_scales_.cwiseProduct(squared_norms(sides_.right_columns())))
                                     : Vector<double>(row_scales_.cwiseAbs2());
  // Rows without features carry no information about M. The floor keeps their precision finite.
  constexpr double min_relative_row_scale = 1e-6;
  const double floor = std::max(min_relative_row_scale * row_scales_.mean(), std::numeric_limits<double>::min());
  row_scales_ = row_scales_.cwiseMax(floor);
  for (Index i = 0; i < rows.count(); ++i)
    if (!(rows.weights()[i] > 0)) row_scales_[i] = std::numeric_limits<double>::infinity();
  passes_ = 1;
}

Index WeightedRegression::core_size() const {
  return sides_.is_bilinear() ? rank() * rank() : rank() * (rank() + 1) / 2;
}

Index WeightedRegression::core_index(Index j, Index l) const {
  return sides_.is_bilinear() ? j * rank() + l : j * rank() - j * (j - 1) / 2 + (l - j);
}

double WeightedRegression::core_scale(Index j, Index l) const {
  return std::sqrt(strengths_[j] * strengths_[l] * (sides_.is_bilinear() || j == l ? 1 : 2));
}

void WeightedRegression::set_prior(const RowMajorMatrix<double>& U, const Vector<double>& strengths, double eps) {
  U_ = U;
  strengths_ = strengths;
  tangent_scales_ = ((sides_.is_bilinear() ? 1 : 2) * eps * strengths).cwiseSqrt();
  precisions_ = (eps * eps * row_scales_).cwiseInverse();
  const Index k = rank();
  P_.resize(rows_.count(), k);
  if (sides_.is_bilinear()) Q_.resize(rows_.count(), k);
  if (k == 0) return;
  ++passes_;
  for_each_row_range(rows_.X(), pool_, [&](int, IndexRange share) {
    rows_.X().multiply(share, sides_.left_columns(), U_.data(), k, P_.data() + share.first * k);
    if (sides_.is_bilinear())
      rows_.X().multiply(share, sides_.right_columns(), U_.data() + sides_.right_first() * k, k,
                         Q_.data() + share.first * k);
  });
}

Vector<double> WeightedRegression::predict(IndexRange block, const RegressionCoefficients& coefficients) const {
  const Index k = rank();
  const RowMajorMatrix<double>& right = right_projections();
  Vector<double> f = Vector<double>::Constant(block.count, coefficients.intercept);
  RowMajorMatrix<double> T(block.count, 1 + k);
  const auto add_side = [&](IndexRange columns, const RowMajorMatrix<double>& partners) {
    rows_.X().multiply(block, columns, coefficients.features.data() + columns.first * (1 + k), 1 + k, T.data());
    f += T.col(0);
    if (k > 0) f += (T.rightCols(k).cwiseProduct(partners.middleRows(block.first, block.count))) * tangent_scales_;
  };
  add_side(sides_.left_columns(), right);
  if (sides_.is_bilinear()) add_side(sides_.right_columns(), P_);
  for (Index j = 0; j < k; ++j)
    for (Index l = sides_.is_bilinear() ? 0 : j; l < k; ++l)
      f += (coefficients.core[core_index(j, l)] * core_scale(j, l)) *
           P_.col(j).segment(block.first, block.count).cwiseProduct(right.col(l).segment(block.first, block.count));
  if (has_squares_) {
    Vector<double> squares(block.count);
    rows_.X().multiply_squares(block, coefficients.squares.data(), squares.data());
    f += squares;
  }
  return f;
}

void WeightedRegression::add_transposed(IndexRange block, const Vector<double>& e, RegressionCoefficients& sums) const {
  const Index k = rank();
  const RowMajorMatrix<double>& right = right_projections();
  if (shape_.intercept) sums.intercept += e.sum();
  RowMajorMatrix<double> T(block.count, 1 + k);
  const auto add_side = [&](IndexRange columns, const RowMajorMatrix<double>& partners) {
    if (shape_.linear)
      T.col(0) = e;
    else
      T.col(0).setZero();
    if (k > 0)
      T.rightCols(k) = e.asDiagonal() * partners.middleRows(block.first, block.count) * tangent_scales_.asDiagonal();
    rows_.X().add_transposed_product(block, columns, T.data(), 1 + k, sums.features.data() + columns.first * (1 + k));
  };
  add_side(sides_.left_columns(), right);
  if (sides_.is_bilinear()) add_side(sides_.right_columns(), P_);
  for (Index j = 0; j < k; ++j) {
    const Vector<double> weighted = e.cwiseProduct(P_.col(j).segment(block.first, block.count));
    for (Index l = sides_.is_bilinear() ? 0 : j; l < k; ++l)
      sums.core[core_index(j, l)] += core_scale(j, l) * weighted.dot(right.col(l).segment(block.first, block.count));
  }
  if (has_squares_) rows_.X().add_transposed_squares(block, e.data(), sums.squares.data());
}

RegressionCoefficients WeightedRegression::sum_over_blocks(const AddBlock& add_block) const {
  ++passes_;
  std::vector<RegressionCoefficients> sums(static_cast<std::size_t>(pool_.count()));
  const Index block_rows = rows_.X().can_split() ? rows_.X().block_rows() : rows_.count();
  for_each_row_range(rows_.X(), pool_, [&](int worker, IndexRange share) {
    RegressionCoefficients& sum = sums[static_cast<std::size_t>(worker)];
    sum.set_zero(rows_.dim(), rank(), core_size(), has_squares_);
    for (Index done = 0; done < share.count; done += block_rows)
      add_block({share.first + done, std::min(block_rows, share.count - done)}, sum);
  });
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].features.size() > 0) sums.front().add(1, sums[worker]);
  return std::move(sums.front());
}

RegressionCoefficients WeightedRegression::multiply_normal_matrix(const RegressionCoefficients& direction) const {
  RegressionCoefficients product = sum_over_blocks([&](IndexRange block, RegressionCoefficients& sums) {
    const Vector<double> f = predict(block, direction);
    add_transposed(block, f.cwiseProduct(precisions_.segment(block.first, block.count)), sums);
  });
  product.features.rightCols(rank()) += direction.features.rightCols(rank());
  product.core += direction.core;
  return product;
}

RegressionCoefficients WeightedRegression::invert_diagonal() const {
  const Index d = rows_.dim();
  const Index k = rank();
  ++passes_;
  Vector<double> moments = Vector<double>::Zero(1 + (has_squares_ ? 2 : 1) * d);
  rows_.X().add_gram_diagonal({0, rows_.count()}, precisions_.data(), moments);
  const auto invert = [](double value) { return value > 0 ? 1 / value : 0.0; };
  RegressionCoefficients inverse;
  inverse.set_zero(d, k, core_size(), has_squares_);
  inverse.intercept = shape_.intercept ? invert(moments[0]) : 0;
  if (shape_.linear) inverse.features.col(0) = moments.segment(1, d).unaryExpr(invert);
  const RowMajorMatrix<double>& right = right_projections();
  for (Index j = 0; j < k; ++j) {
    const double scale = tangent_scales_[j] * tangent_scales_[j] / moments[0];
    const auto add_side = [&](IndexRange columns, const RowMajorMatrix<double>& partners) {
      const double weight = scale * precisions_.dot(partners.col(j).cwiseAbs2());
      inverse.features.col(1 + j).segment(columns.first, columns.count) =
          (1 + weight * moments.segment(1 + columns.first, columns.count).array()).inverse();
    };
    add_side(sides_.left_columns(), right);
    if (sides_.is_bilinear()) add_side(sides_.right_columns(), P_);
    for (Index l = sides_.is_bilinear() ? 0 : j; l < k; ++l) {
      const double square = core_scale(j, l) * core_scale(j, l) *
                            precisions_.dot(P_.col(j).cwiseAbs2().cwiseProduct(right.col(l).cwiseAbs2()));
      inverse.core[core_index(j, l)] = 1 / (1 + square);
    }
  }
  if (has_squares_) inverse.squares = moments.tail(d).unaryExpr(invert);
  return inverse;
}

void WeightedRegression::solve(RegressionCoefficients& coefficients, double tolerance, int max_iterations) {
  residuals_.resize(rows_.count());
  const auto update_residuals = [&] {
    return sum_over_blocks([&](IndexRange block, RegressionCoefficients& sums) {
      auto r = residuals_.segment(block.first, block.count);
      r = rows_.targets().segment(block.first, block.count) - predict(block, coefficients);
      add_transposed(block, r.cwiseProduct(precisions_.segment(block.first, block.count)), sums);
    });
  };
  RegressionCoefficients gradient = update_residuals();
  gradient.features.rightCols(rank()) -= coefficients.features.rightCols(rank());
  gradient.core -= coefficients.core;
  const RegressionCoefficients inverse_diagonal = invert_diagonal();
  RegressionCoefficients z = gradient;
  z.multiply_elementwise(inverse_diagonal);
  RegressionCoefficients direction = z;
  double rz = gradient.dot(z);
  const double target = tolerance * tolerance * rz;
  for (int i = 0; i < max_iterations && rz > target && rz > 0; ++i) {
    const RegressionCoefficients product = multiply_normal_matrix(direction);
    const double curvature = direction.dot(product);
    if (!(curvature > 0)) break;
    const double step = rz / curvature;
    coefficients.add(step, direction);
    gradient.add(-step, product);
    z = gradient;
    z.multiply_elementwise(inverse_diagonal);
    const double next = gradient.dot(z);
    direction.scale_and_add(next / rz, z);
    rz = next;
  }
  update_residuals();
}

RowMajorMatrix<double> WeightedRegression::multiply_estimate(const RegressionCoefficients& coefficients,
                                                             const RowMajorMatrix<double>& Z) const {
  const Index k = rank();
  const Index columns = Z.cols();
  ++passes_;
  const Vector<double> h = residuals_.cwiseQuotient(row_scales_);
  std::vector<RowMajorMatrix<double>> sums(static_cast<std::size_t>(pool_.count()));
  const Index block_rows = rows_.X().can_split() ? rows_.X().block_rows() : rows_.count();
  for_each_row_range(rows_.X(), pool_, [&](int worker, IndexRange share) {
    RowMajorMatrix<double>& sum = sums[static_cast<std::size_t>(worker)];
    sum.setZero(Z.rows(), columns);
    RowMajorMatrix<double> projected;
    const auto add_product = [&](IndexRange block, IndexRange from, IndexRange to) {
      projected.resize(block.count, columns);
      rows_.X().multiply(block, from, Z.data() + from.first * columns, columns, projected.data());
      projected = h.segment(block.first, block.count).asDiagonal() * projected;
      rows_.X().add_transposed_product(block, to, projected.data(), columns, sum.data() + to.first * columns);
    };
    for (Index done = 0; done < share.count; done += block_rows) {
      const IndexRange block{share.first + done, std::min(block_rows, share.count - done)};
      add_product(block, sides_.right_columns(), sides_.left_columns());
      if (sides_.is_bilinear()) add_product(block, sides_.left_columns(), sides_.right_columns());
    }
  });
  RowMajorMatrix<double> product = std::move(sums.front());
  for (std::size_t worker = 1; worker < sums.size(); ++worker)
    if (sums[worker].size() > 0) product += sums[worker];
  if (k == 0) return product;
  Matrix<double> C = Matrix<double>::Zero(k, k);
  for (Index j = 0; j < k; ++j)
    for (Index l = sides_.is_bilinear() ? 0 : j; l < k; ++l) {
      const double value = coefficients.core[core_index(j, l)] * core_scale(j, l);
      C(j, l) += sides_.is_bilinear() ? value : value / 2;
      if (!sides_.is_bilinear()) C(l, j) += value / 2;
    }
  const RowMajorMatrix<double> V =
      coefficients.features.rightCols(k) * tangent_scales_.asDiagonal() * (sides_.is_bilinear() ? 1.0 : 0.5);
  const Matrix<double> right_U = sides_.right(U_).transpose() * sides_.right(Z);
  const Matrix<double> right_V = sides_.right(V).transpose() * sides_.right(Z);
  product.topRows(sides_.left_count()) += sides_.left(U_) * (C * right_U + right_V) + sides_.left(V) * right_U;
  if (sides_.is_bilinear()) {
    const Matrix<double> left_U = sides_.left(U_).transpose() * sides_.left(Z);
    const Matrix<double> left_V = sides_.left(V).transpose() * sides_.left(Z);
    product.bottomRows(sides_.right_count()) +=
        sides_.right(U_) * (C.transpose() * left_U + left_V) + sides_.right(V) * left_U;
  }
  return product;
}

}  // namespace dyad
