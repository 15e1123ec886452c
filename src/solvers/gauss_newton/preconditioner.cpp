#include "solvers/gauss_newton/preconditioner.h"

#include <algorithm>
#include <limits>

#include "linalg/decompositions.h"

namespace dyad {
namespace {

constexpr double least_share = 1e-6;  // lower bound of eigenvalues relative to the largest
constexpr Index most_features = 512;  // beyond, the eigenvectors cost more than they save

void bound_from_zero(Vector<double>& values) {
  if (values.size() == 0) return;
  const double least = std::max(least_share * values.maxCoeff(), std::numeric_limits<double>::min());
  values = values.cwiseMax(least);
}

/// Eigenvectors and eigenvalues of a symmetric matrix, the latter bounded away from 0.
void decompose(const Small<double>& matrix, Small<double>& axes, Vector<double>& values) {
  const SymmetricEigen<double> eigen = symmetric_eigen(matrix);
  axes = eigen.vectors;
  values = eigen.values;
  bound_from_zero(values);
}

}  // namespace

Preconditioner::Preconditioner(const NormalEquations& equations, const NewtonOptions& options)
    : options_(options), dim_(equations.dim()) {
  const Sides sides(dim_, options.shape.left_dim);
  side_count_ = sides.two() ? 2 : 1;
  sides_[0].count = sides.left_count();
  if (sides.two()) {
    sides_[1].first = sides.right_first();
    sides_[1].count = sides.right_count();
  }
  compute_moments(equations);
}

void Preconditioner::compute_moments(const NormalEquations& equations) {
  linear_diagonal_ = equations.product_diagonal(has_squares());
  const double weight = std::max(linear_diagonal_[0], std::numeric_limits<double>::min());
  const bool has_full_matrix =
      options_.preconditioned && dim_ <= most_features && weight >= static_cast<double>(2 * linear_count());
  if (has_full_matrix) {
    linear_ = equations.products(has_squares()) / weight;
    linear_diagonal_ = linear_.diagonal();
  } else {
    linear_diagonal_ /= weight;
  }
  bound_from_zero(linear_diagonal_);
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    if (has_full_matrix)
      decompose(linear_.block(1 + side.first, 1 + side.first, side.count, side.count), side.axes, side.moments);
    else
      side.moments = linear_diagonal_.segment(1 + side.first, side.count);
  }
}

void Preconditioner::move_to(const Objective& objective, const SignedFactors<double>& parameters) {
  total_curvature_ = std::max(objective.total_curvature(), 1e-6 * objective.total_weight());
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    const double twice = side_count_ == 2 ? 1 : 2;
    const auto signs = parameters.signs.asDiagonal();
    // The derivatives with respect to the factors of one side are the projections of the other.
    const Small<double> K = (twice * twice / total_curvature_) *
                            (signs * objective.projection_products(side_count_ == 2 && s == 0) * signs);
    side.factor_diagonal = K.diagonal().cwiseMax(least_share);
    if (options_.preconditioned) {
      decompose(K, side.factor_axes, side.factor_moments);
      side.factor_moments = side.factor_moments.cwiseMax(least_share);
    } else {
      side.factor_moments = side.factor_diagonal;
    }
  }
}

void Preconditioner::set_damping(double damping) {
  damping_ = damping;
  if (linear_.size() == 0) return;
  const double total = total_curvature_;
  Small<double> equations = total * linear_;
  equations.diagonal() += (damping + least_share) * total * linear_diagonal_;
  equations.diagonal().tail(equations.rows() - 1).array() += options_.ridge.weights;
  linear_solver_.compute(equations);
}

Vector<double> Preconditioner::linear_part(const ParameterVector& v) const {
  Vector<double> part(linear_count());
  part[0] = v.intercept;
  part.segment(1, dim_) = v.features.col(0);
  if (has_squares()) part.tail(dim_) = v.squares;
  return part;
}

void Preconditioner::set_linear_part(const Vector<double>& part, ParameterVector& v) const {
  if (options_.shape.intercept) v.intercept = part[0];
  if (options_.shape.linear) v.features.col(0) = part.segment(1, dim_);
  if (has_squares()) v.squares = part.tail(dim_);
}

ParameterVector Preconditioner::damped(const ParameterVector& v) const {
  ParameterVector result = v;
  const double by = damping_ * total_curvature_;
  set_linear_part(by * linear_diagonal_.cwiseProduct(linear_part(v)), result);
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    result.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) =
        by * (linear_diagonal_.segment(1 + side.first, side.count).asDiagonal() *
              v.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) *
              side.factor_diagonal.asDiagonal());
  }
  return result;
}

ParameterVector Preconditioner::solved(const ParameterVector& v) const {
  ParameterVector result = v;
  const Index k = options_.shape.rank;
  const double total = total_curvature_;
  const double more = 1 + damping_;
  if (linear_.size() > 0) {
    set_linear_part(linear_solver_.solve(linear_part(v)), result);
  } else {
    Vector<double> diagonal = more * total * linear_diagonal_;
    diagonal.tail(diagonal.size() - 1).array() += options_.ridge.weights;
    set_linear_part(linear_part(v).cwiseQuotient(diagonal), result);
  }
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    Tall<double> own = v.features.middleRows(side.first, side.count).rightCols(k);
    if (side.axes.size() > 0) own = side.axes.transpose() * own;
    if (side.factor_axes.size() > 0) own = own * side.factor_axes;
    const double ridge = options_.ridge.factors;
    // The damping is diagonal in the features. Along eigenvectors of C its mean is used.
    const double usual = linear_diagonal_.segment(1 + side.first, side.count).mean();
    for (Index j = 0; j < side.count; ++j) {
      const double moment = side.axes.size() > 0 ? side.moments[j] + damping_ * usual : more * side.moments[j];
      own.row(j).array() /= total * moment * side.factor_moments.transpose().array() + ridge;
    }
    if (side.factor_axes.size() > 0) own = own * side.factor_axes.transpose();
    if (side.axes.size() > 0) own = side.axes * own;
    result.features.middleRows(side.first, side.count).rightCols(k) = own;
  }
  return result;
}

}  // namespace dyad
