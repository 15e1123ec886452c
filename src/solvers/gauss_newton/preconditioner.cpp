#include "solvers/gauss_newton/preconditioner.h"

#include <algorithm>
#include <limits>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

// Lower bound of eigenvalues and diagonal entries, relative to the largest one. Limits the condition number. It is also
// an absolute lower bound for K, which is 0 if all factors are 0. Sensitivity: docs/constants.md.
constexpr double min_relative_eigenvalue = 1e-6;
// Maximum number of features for which C is decomposed. For more, the d^3 eigendecomposition costs more than it saves.
// Sensitivity: docs/constants.md.
constexpr Index max_full_features = 512;
// Minimum total weight of the rows, divided by the number of entries of (1, x, x^2), for which the full matrix of
// second moments is used. It is nearly singular for fewer rows. Sensitivity: docs/constants.md.
constexpr Index min_rows_per_moment = 2;
// Lower bound of the mean curvature of the rows. Logistic curvatures p (1 - p) underflow for confident predictions.
// Sensitivity: docs/constants.md.
constexpr double min_mean_curvature = 1e-6;

void bound_away_from_zero(Vector<double>& values) {
  if (values.size() == 0) return;
  const double floor = std::max(min_relative_eigenvalue * values.maxCoeff(), std::numeric_limits<double>::min());
  values = values.cwiseMax(floor);
}

/// Eigendecomposition of a symmetric matrix, with eigenvalues bounded away from 0.
void decompose(const Matrix<double>& matrix, Matrix<double>& eigenvectors, Vector<double>& eigenvalues) {
  const SymmetricEigen<double> eigen = symmetric_eigen(matrix);
  eigenvectors = eigen.vectors;
  eigenvalues = eigen.values;
  bound_away_from_zero(eigenvalues);
}

}  // namespace

Preconditioner::Preconditioner(const NormalEquations& equations, const NewtonOptions& options)
    : options_(options), dim_(equations.dim()) {
  const Sides sides(dim_, options.shape.left_dim);
  side_count_ = sides.is_bilinear() ? 2 : 1;
  sides_[0].count = sides.left_count();
  if (sides.is_bilinear()) {
    sides_[1].first = sides.right_first();
    sides_[1].count = sides.right_count();
  }
  compute_moments(equations);
}

void Preconditioner::compute_moments(const NormalEquations& equations) {
  linear_diagonal_ = equations.gram_diagonal(has_squares());
  const double weight = std::max(linear_diagonal_[0], std::numeric_limits<double>::min());
  const bool has_full_matrix = options_.has_moment_preconditioner && dim_ <= max_full_features &&
                               weight >= static_cast<double>(min_rows_per_moment * linear_count());
  if (has_full_matrix) {
    linear_ = equations.gram(has_squares()) / weight;
    linear_diagonal_ = linear_.diagonal();
  } else {
    linear_diagonal_ /= weight;
  }
  bound_away_from_zero(linear_diagonal_);
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    if (has_full_matrix)
      decompose(linear_.block(1 + side.first, 1 + side.first, side.count, side.count), side.eigenvectors,
                side.eigenvalues);
    else
      side.eigenvalues = linear_diagonal_.segment(1 + side.first, side.count);
  }
}

void Preconditioner::update(const Objective& objective, const SignedFactors<double>& parameters) {
  total_curvature_ = std::max(objective.total_curvature(), min_mean_curvature * objective.total_weight());
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    const double symmetry_factor = side_count_ == 2 ? 1 : 2;
    const auto signs = parameters.signs.asDiagonal();
    // The derivatives with respect to the factors of one side are the projections of the other side.
    const Matrix<double> K = (symmetry_factor * symmetry_factor / total_curvature_) *
                             (signs * objective.projection_gram(side_count_ == 2 && s == 0) * signs);
    side.factor_diagonal = K.diagonal().cwiseMax(min_relative_eigenvalue);
    if (options_.has_moment_preconditioner) {
      decompose(K, side.factor_eigenvectors, side.factor_eigenvalues);
      side.factor_eigenvalues = side.factor_eigenvalues.cwiseMax(min_relative_eigenvalue);
    } else {
      side.factor_eigenvalues = side.factor_diagonal;
    }
  }
}

void Preconditioner::set_damping(double damping) {
  damping_ = damping;
  if (linear_.size() == 0) return;
  const double total = total_curvature_;
  Matrix<double> equations = total * linear_;
  equations.diagonal() += (damping + min_relative_eigenvalue) * total * linear_diagonal_;
  equations.diagonal().tail(equations.rows() - 1).array() += options_.ridge.weights;
  linear_solver_.compute(equations);
}

Vector<double> Preconditioner::pack_linear(const ParameterVector& v) const {
  Vector<double> linear(linear_count());
  linear[0] = v.intercept;
  linear.segment(1, dim_) = v.features.col(0);
  if (has_squares()) linear.tail(dim_) = v.squares;
  return linear;
}

void Preconditioner::unpack_linear(const Vector<double>& linear, ParameterVector& v) const {
  if (options_.shape.intercept) v.intercept = linear[0];
  if (options_.shape.linear) v.features.col(0) = linear.segment(1, dim_);
  if (has_squares()) v.squares = linear.tail(dim_);
}

ParameterVector Preconditioner::apply_damping(const ParameterVector& v) const {
  ParameterVector result = v;
  const double scale = damping_ * total_curvature_;
  unpack_linear(scale * linear_diagonal_.cwiseProduct(pack_linear(v)), result);
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    result.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) =
        scale * (linear_diagonal_.segment(1 + side.first, side.count).asDiagonal() *
                 v.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) *
                 side.factor_diagonal.asDiagonal());
  }
  return result;
}

ParameterVector Preconditioner::solve(const ParameterVector& v) const {
  ParameterVector result = v;
  const Index k = options_.shape.rank;
  const double total = total_curvature_;
  const double damping_factor = 1 + damping_;
  if (linear_.size() > 0) {
    unpack_linear(linear_solver_.solve(pack_linear(v)), result);
  } else {
    Vector<double> diagonal = damping_factor * total * linear_diagonal_;
    diagonal.tail(diagonal.size() - 1).array() += options_.ridge.weights;
    unpack_linear(pack_linear(v).cwiseQuotient(diagonal), result);
  }
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    RowMajorMatrix<double> block = v.features.middleRows(side.first, side.count).rightCols(k);
    if (side.eigenvectors.size() > 0) block = side.eigenvectors.transpose() * block;
    if (side.factor_eigenvectors.size() > 0) block = block * side.factor_eigenvectors;
    const double ridge = options_.ridge.factors;
    // The damping is diagonal in the features. In the basis of the eigenvectors of C, its mean is used instead.
    const double mean_diagonal = linear_diagonal_.segment(1 + side.first, side.count).mean();
    for (Index j = 0; j < side.count; ++j) {
      const double eigenvalue = side.eigenvectors.size() > 0 ? side.eigenvalues[j] + damping_ * mean_diagonal
                                                             : damping_factor * side.eigenvalues[j];
      block.row(j).array() /= total * eigenvalue * side.factor_eigenvalues.transpose().array() + ridge;
    }
    if (side.factor_eigenvectors.size() > 0) block = block * side.factor_eigenvectors.transpose();
    if (side.eigenvectors.size() > 0) block = side.eigenvectors * block;
    result.features.middleRows(side.first, side.count).rightCols(k) = block;
  }
  return result;
}

}  // namespace dyad
