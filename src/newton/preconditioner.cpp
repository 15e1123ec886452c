#include "newton/preconditioner.h"

#include <algorithm>
#include <limits>

#include "base/decompositions.h"

namespace dyad {
namespace {

constexpr double least_share = 1e-6;  // of the largest, which keeps flat directions from running away
constexpr Index most_features = 512;  // beyond, turning into axes costs more than it saves

template <typename Scalar>
void keep_from_zero(Vector<Scalar>& extents) {
  if (extents.size() == 0) return;
  const Scalar least =
      std::max(static_cast<Scalar>(least_share) * extents.maxCoeff(), std::numeric_limits<Scalar>::min());
  extents = extents.cwiseMax(least);
}

/// Axes of a symmetric matrix and its extents along them.
template <typename Scalar>
void decompose(const Small<Scalar>& matrix, Small<Scalar>& axes, Vector<Scalar>& extents) {
  const SymmetricEigen<Scalar> eigen = symmetric_eigen(matrix);
  axes = eigen.vectors;
  extents = eigen.values;
  keep_from_zero(extents);
}

}  // namespace

template <typename Scalar>
Preconditioner<Scalar>::Preconditioner(const RowLooks<Scalar>& looks, const NewtonOptions& options)
    : options_(options), dim_(looks.dim()) {
  const Sides sides(dim_, options.shape.left_dim);
  side_count_ = sides.two() ? 2 : 1;
  sides_[0].count = sides.left_count();
  if (sides.two()) {
    sides_[1].first = sides.right_first();
    sides_[1].count = sides.right_count();
  }
  find_moments(looks);
}

template <typename Scalar>
void Preconditioner<Scalar>::find_moments(const RowLooks<Scalar>& looks) {
  linear_diagonal_ = looks.product_diagonal(has_squares());
  const Scalar weight = std::max(linear_diagonal_[0], std::numeric_limits<Scalar>::min());
  const bool knows_all =
      options_.preconditioned && dim_ <= most_features && weight >= static_cast<Scalar>(2 * linear_count());
  if (knows_all) {
    linear_ = looks.products(has_squares()) / weight;
    linear_diagonal_ = linear_.diagonal();
  } else {
    linear_diagonal_ /= weight;
  }
  keep_from_zero(linear_diagonal_);
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    if (knows_all)
      decompose<Scalar>(linear_.block(1 + side.first, 1 + side.first, side.count, side.count), side.axes, side.moments);
    else
      side.moments = linear_diagonal_.segment(1 + side.first, side.count);
  }
}

template <typename Scalar>
void Preconditioner<Scalar>::move_to(const Objective<Scalar>& objective, const SignedFactors<Scalar>& parameters) {
  total_curvature_ = std::max(objective.total_curvature(), 1e-6 * objective.total_weight());
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    const double twice = side_count_ == 2 ? 1 : 2;
    const auto signs = parameters.signs.template cast<double>().asDiagonal();
    // A factor of one side moves along the projections of the other.
    const Small<double> K = (twice * twice / total_curvature_) *
                            (signs * objective.projection_products(side_count_ == 2 && s == 0) * signs);
    side.slopes = K.diagonal().template cast<Scalar>().cwiseMax(static_cast<Scalar>(least_share));
    if (options_.preconditioned) {
      decompose<Scalar>(K.template cast<Scalar>(), side.turns, side.bends);
      side.bends = side.bends.cwiseMax(static_cast<Scalar>(least_share));
    } else {
      side.bends = side.slopes;
    }
  }
}

template <typename Scalar>
void Preconditioner<Scalar>::set_damping(double damping) {
  damping_ = damping;
  if (linear_.size() == 0) return;
  const auto total = static_cast<Scalar>(total_curvature_);
  Small<Scalar> equations = total * linear_;
  equations.diagonal() += static_cast<Scalar>(damping + least_share) * total * linear_diagonal_;
  equations.diagonal().tail(equations.rows() - 1).array() += static_cast<Scalar>(options_.ridge.weights);
  linear_solver_.compute(equations);
}

template <typename Scalar>
Vector<Scalar> Preconditioner<Scalar>::linear_part(const Direction<Scalar>& v) const {
  Vector<Scalar> part(linear_count());
  part[0] = v.intercept;
  part.segment(1, dim_) = v.features.col(0);
  if (has_squares()) part.tail(dim_) = v.squares;
  return part;
}

template <typename Scalar>
void Preconditioner<Scalar>::set_linear_part(const Vector<Scalar>& part, Direction<Scalar>& v) const {
  if (options_.shape.intercept) v.intercept = part[0];
  if (options_.shape.linear) v.features.col(0) = part.segment(1, dim_);
  if (has_squares()) v.squares = part.tail(dim_);
}

template <typename Scalar>
Direction<Scalar> Preconditioner<Scalar>::damped(const Direction<Scalar>& v) const {
  Direction<Scalar> result = v;
  const auto by = static_cast<Scalar>(damping_ * total_curvature_);
  set_linear_part(by * linear_diagonal_.cwiseProduct(linear_part(v)), result);
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    result.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) =
        by * (linear_diagonal_.segment(1 + side.first, side.count).asDiagonal() *
              v.features.middleRows(side.first, side.count).rightCols(options_.shape.rank) * side.slopes.asDiagonal());
  }
  return result;
}

template <typename Scalar>
Direction<Scalar> Preconditioner<Scalar>::solved(const Direction<Scalar>& v) const {
  Direction<Scalar> result = v;
  const Index k = options_.shape.rank;
  const auto total = static_cast<Scalar>(total_curvature_);
  const auto more = static_cast<Scalar>(1 + damping_);
  if (linear_.size() > 0) {
    set_linear_part(linear_solver_.solve(linear_part(v)), result);
  } else {
    Vector<Scalar> bends = more * total * linear_diagonal_;
    bends.tail(bends.size() - 1).array() += static_cast<Scalar>(options_.ridge.weights);
    set_linear_part(linear_part(v).cwiseQuotient(bends), result);
  }
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    Tall<Scalar> own = v.features.middleRows(side.first, side.count).rightCols(k);
    if (side.axes.size() > 0) own = side.axes.transpose() * own;
    if (side.turns.size() > 0) own = own * side.turns;
    const auto ridge = static_cast<Scalar>(options_.ridge.factors);
    // Along the axes of C the damping, which is of single features, is about the same for all.
    const Scalar usual = linear_diagonal_.segment(1 + side.first, side.count).mean();
    for (Index j = 0; j < side.count; ++j) {
      const Scalar moment =
          side.axes.size() > 0 ? side.moments[j] + static_cast<Scalar>(damping_) * usual : more * side.moments[j];
      own.row(j).array() /= total * moment * side.bends.transpose().array() + ridge;
    }
    if (side.turns.size() > 0) own = own * side.turns.transpose();
    if (side.axes.size() > 0) own = side.axes * own;
    result.features.middleRows(side.first, side.count).rightCols(k) = own;
  }
  return result;
}

template class Preconditioner<float>;
template class Preconditioner<double>;

}  // namespace dyad
