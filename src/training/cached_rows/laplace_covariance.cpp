#include "training/cached_rows/laplace_covariance.h"

#include <algorithm>
#include <cmath>

#include <Eigen/Cholesky>

#include "model/sides.h"

namespace dyad {
namespace {

constexpr double max_covariance_work = 2e10;       // multiplications: about 10 s on one core
constexpr Index max_covariance_parameters = 3000;  // J'HJ takes 72 MB
constexpr double min_relative_pivot = 1e-11;       // of the scaled J'HJ, whose rounding errors are about p epsilon

}  // namespace

bool LaplaceCovariance::can_compute(const ObservedRows& rows, const ModelShape& shape) {
  const Index parameters = shape.unknowns() + shape.rank * shape.rank;
  const auto p = static_cast<double>(parameters);
  return parameters <= max_covariance_parameters &&
         static_cast<double>(rows.count()) * p * p + p * p * p <= max_covariance_work;
}

LaplaceCovariance::LaplaceCovariance(const ObservedRows& rows, const ModelShape& shape,
                                     const SignedFactors<double>& parameters, double noise_variance)
    : shape_(shape), parameters_(parameters), noise_variance_(noise_variance), rank_(parameters.rank()) {
  const Index d = parameters.dim();
  first_weight_ = shape.intercept ? 1 : 0;
  first_square_ = first_weight_ + (shape.linear ? d : 0);
  first_factor_ = first_square_ + (shape.diagonal == Diagonal::free ? d : 0);
  count_ = first_factor_ + d * rank_;
  inverse_.setZero(count_, count_);
  visit_jacobian(rows, [&](Index, const Eigen::Ref<const RowMajorMatrix<double>>& J) {
    inverse_.selfadjointView<Eigen::Lower>().rankUpdate(J.transpose());
  });
  inverse_.triangularView<Eigen::StrictlyUpper>() = inverse_.transpose();
  add_invariant_directions();
  // Scaling to unit diagonal, so that pivots are relative.
  const Vector<double> scales =
      inverse_.diagonal().unaryExpr([](double value) { return value > 0 ? 1 / std::sqrt(value) : 1.0; });
  const Matrix<double> scaled = scales.asDiagonal() * inverse_ * scales.asDiagonal();
  const Eigen::LLT<Matrix<double>> decomposition(scaled);
  is_identifiable_ = decomposition.info() == Eigen::Success &&
                     decomposition.matrixLLT().diagonal().minCoeff() > std::sqrt(min_relative_pivot);
  if (!is_identifiable_ || noise_variance == 0) {
    inverse_.setZero();
    return;
  }
  inverse_ = decomposition.solve(Matrix<double>::Identity(count_, count_));
  inverse_ = scales.asDiagonal() * inverse_ * scales.asDiagonal();
}

void LaplaceCovariance::visit_jacobian(
    const ObservedRows& rows,
    const std::function<void(Index first, const Eigen::Ref<const RowMajorMatrix<double>>& J)>& task) const {
  const Sides sides(parameters_.dim(), parameters_.left_dim);
  const Index d = parameters_.dim();
  constexpr Index block_rows = 256;  // a block of J of 3,000 parameters takes 6 MB
  RowMajorMatrix<double> X(block_rows, d);
  RowMajorMatrix<double> J(block_rows, count_);
  for (Index first = 0; first < rows.count(); first += block_rows) {
    const Index count = std::min(block_rows, rows.count() - first);
    rows.X().copy_rows({first, count}, X.data());
    J.setZero();
    for (Index i = 0; i < count; ++i) {
      const double root = std::sqrt(std::max(0.0, rows.weights()[first + i]));
      if (root == 0) continue;
      const auto x = X.row(i);
      auto row = J.row(i);
      if (shape_.intercept) row[0] = 1;
      if (shape_.linear) row.segment(first_weight_, d) = x;
      if (shape_.diagonal == Diagonal::free) row.segment(first_square_, d) = x.cwiseAbs2();
      const Eigen::RowVectorXd left = x.head(sides.left_count()) * sides.left(parameters_.A);
      const Eigen::RowVectorXd right =
          sides.is_bilinear() ? Eigen::RowVectorXd(x.tail(sides.right_count()) * sides.right(parameters_.A)) : left;
      for (Index j = 0; j < d; ++j)
        for (Index c = 0; c < rank_; ++c) {
          const double sign = parameters_.signs[c];
          double derivative =
              sides.is_bilinear() ? sign * (j < sides.left_dim ? right[c] : left[c]) * x[j] : 2 * sign * left[c] * x[j];
          if (!sides.is_bilinear() && shape_.diagonal != Diagonal::tied)
            derivative -= 2 * sign * parameters_.A(j, c) * x[j] * x[j];
          row[factor_index(j, c)] = derivative;
        }
      row *= root;
    }
    task(first, J.topRows(count));
  }
}

double LaplaceCovariance::leave_one_out_error(const ObservedRows& rows, const Vector<double>& residuals) const {
  constexpr double max_leverage = 1 - 1e-3;  // rows that determine a parameter alone are left out
  double squares = 0;
  visit_jacobian(rows, [&](Index first, const Eigen::Ref<const RowMajorMatrix<double>>& J) {
    const Vector<double> leverages = (J * inverse_).cwiseProduct(J).rowwise().sum();
    for (Index i = 0; i < J.rows(); ++i)
      if (leverages[i] < max_leverage)
        squares += rows.weights()[first + i] * std::pow(residuals[first + i] / (1 - leverages[i]), 2);
  });
  return squares / rows.weights().sum();
}

void LaplaceCovariance::add_invariant_directions() {
  const Sides sides(parameters_.dim(), parameters_.left_dim);
  const double size = inverse_.diagonal().tail(parameters_.A.size()).mean();
  for (Index c = 0; c < rank_; ++c)
    for (Index e = 0; e < (sides.is_bilinear() ? rank_ : c); ++e) {
      RowMajorMatrix<double> direction = RowMajorMatrix<double>::Zero(parameters_.dim(), rank_);
      if (sides.is_bilinear()) {
        direction.col(c).head(sides.left_count()) = parameters_.A.col(e).head(sides.left_count());
        direction.col(e).tail(sides.right_count()) = -parameters_.A.col(c).tail(sides.right_count());
      } else {
        direction.col(c) = parameters_.signs[c] * parameters_.A.col(e);
        direction.col(e) = -parameters_.signs[e] * parameters_.A.col(c);
      }
      const double squared_norm = direction.squaredNorm();
      if (!(squared_norm > 0)) continue;
      const Eigen::Map<const Vector<double>> flat(direction.data(), direction.size());
      inverse_.bottomRightCorner(flat.size(), flat.size()) += (size / squared_norm) * flat * flat.transpose();
    }
}

Matrix<double> LaplaceCovariance::matrix_errors() const {
  const Sides sides(parameters_.dim(), parameters_.left_dim);
  Matrix<double> errors(sides.left_count(), sides.right_count());
  const RowMajorMatrix<double> scaled = parameters_.A * parameters_.signs.asDiagonal();
  for (Index i = 0; i < errors.rows(); ++i)
    for (Index j = 0; j < errors.cols(); ++j) {
      // M_ij = sum_c signs_c A_ic A_jc, with derivatives signs_c A_jc and signs_c A_ic.
      const Index right = sides.right_first() + j;
      const auto C_ii = inverse_.block(factor_index(i, 0), factor_index(i, 0), rank_, rank_);
      const auto C_ij = inverse_.block(factor_index(i, 0), factor_index(right, 0), rank_, rank_);
      const auto C_jj = inverse_.block(factor_index(right, 0), factor_index(right, 0), rank_, rank_);
      const Eigen::RowVectorXd a = scaled.row(right);
      const Eigen::RowVectorXd b = scaled.row(i);
      const double variance = (a * C_ii).dot(a) + 2 * (a * C_ij).dot(b) + (b * C_jj).dot(b);
      errors(i, j) = std::sqrt(noise_variance_ * std::max(0.0, variance));
    }
  return errors;
}

Vector<double> LaplaceCovariance::factor_errors() const {
  return (noise_variance_ * inverse_.diagonal().tail(parameters_.A.size())).cwiseMax(0).cwiseSqrt();
}

Vector<double> LaplaceCovariance::weight_errors() const {
  return (noise_variance_ * inverse_.diagonal().segment(first_weight_, parameters_.dim())).cwiseMax(0).cwiseSqrt();
}

}  // namespace dyad
