#include "newton/preconditioner.h"

#include <algorithm>

#include <Eigen/Eigenvalues>

#include "rows/products.h"

namespace dyad {
namespace {

constexpr double least_share = 1e-6;  // of the largest, which keeps flat directions from running away
constexpr Index most_dense = 512;     // features: beyond, turning into their axes costs more than it saves

/// Axes of a symmetric matrix and its extent along them, no less than a share of the largest.
template <typename Scalar>
void decompose(const Small<Scalar>& matrix, Small<Scalar>& axes, Vector<Scalar>& extents) {
  const Eigen::SelfAdjointEigenSolver<Small<Scalar>> eigen(matrix);
  axes = eigen.eigenvectors();
  extents = eigen.eigenvalues();
}

template <typename Scalar>
void keep_from_zero(Vector<Scalar>& extents) {
  if (extents.size() == 0) return;
  const Scalar least = std::max(static_cast<Scalar>(least_share) * extents.maxCoeff(), std::numeric_limits<Scalar>::min());
  extents = extents.cwiseMax(least);
}

}  // namespace

template <typename Scalar>
Preconditioner<Scalar>::Preconditioner(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
    : options_(options) {
  const Sides sides(rows.dim(), options.left_dim);
  side_count_ = sides.two() ? 2 : 1;
  sides_[0].count = sides.left_count();
  if (sides.two()) {
    sides_[1].first = sides.right_first();
    sides_[1].count = sides.right_count();
  }
  Vector<Scalar> weights(rows.count());
  for (Index i = 0; i < rows.count(); ++i) weights[i] = rows.weight(i);
  const Scalar total = std::max(weights.sum(), std::numeric_limits<Scalar>::min());
  for (Index s = 0; s < side_count_; ++s) {
    Side& side = sides_[static_cast<std::size_t>(s)];
    const Rows<Scalar> own = sides.two() ? rows.window(side.first, side.count) : rows;
    if (options.preconditioned && !rows.is_sparse() && side.count <= most_dense) {
      std::vector<Small<Scalar>> sums(static_cast<std::size_t>(workers.count()));
      workers.split(rows.count(), [&](int worker, Share share) {
        Small<Scalar>& sum = sums[static_cast<std::size_t>(worker)];
        sum.setZero(side.count, side.count);
        constexpr Index most = 256;
        for (Index done = 0; done < share.count; done += most) {
          const Index count = std::min(most, share.count - done);
          const Index first = share.first + done;
          const Eigen::Map<const Tall<Scalar>, 0, Eigen::OuterStride<>> X(own.row(first), count, side.count,
                                                                          Eigen::OuterStride<>(own.stride()));
          sum.noalias() += X.transpose() * weights.segment(first, count).asDiagonal() * X;
        }
      });
      for (std::size_t worker = 1; worker < sums.size(); ++worker)
        if (sums[worker].size() > 0) sums.front() += sums[worker];
      const Small<Scalar> C = sums.front() / total;
      decompose<Scalar>(C, side.axes, side.moments);
      if (options.diagonal == Diagonal::free) {
        decompose<Scalar>(2 * C.cwiseProduct(C), square_axes_, square_moments_);
        keep_from_zero(square_moments_);
      }
    } else {
      side.moments.setZero(side.count);
      add_back_projected_squares(own, weights.data(), 1, side.moments.data());
      side.moments /= total;
      if (options.diagonal == Diagonal::free) {
        square_moments_ = 2 * side.moments.cwiseProduct(side.moments);
        keep_from_zero(square_moments_);
      }
    }
    keep_from_zero(side.moments);
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
    Small<double> K = (twice * twice / total_curvature_) *
                      (signs * objective.projection_products(side_count_ == 2 && s == 0) * signs);
    if (!options_.preconditioned) K = Small<double>(K.diagonal().asDiagonal());
    const Small<Scalar> bends = K.template cast<Scalar>();
    decompose<Scalar>(bends, side.turns, side.bends);
    keep_from_zero(side.bends);
    side.bends = side.bends.cwiseMax(static_cast<Scalar>(least_share));
  }
}

template <typename Scalar>
template <typename Change>
Direction<Scalar> Preconditioner<Scalar>::changed(const Direction<Scalar>& v, Change&& change) const {
  Direction<Scalar> result = v;
  const Index k = options_.rank;
  const auto total = static_cast<Scalar>(total_curvature_);
  for (Index s = 0; s < side_count_; ++s) {
    const Side& side = sides_[static_cast<std::size_t>(s)];
    Tall<Scalar> own = v.features.middleRows(side.first, side.count);
    if (side.axes.size() > 0) own = side.axes.transpose() * own;
    own.rightCols(k) = own.rightCols(k) * side.turns;
    for (Index j = 0; j < side.count; ++j) {
      own(j, 0) = change(own(j, 0), total * side.moments[j], static_cast<Scalar>(options_.ridge.weights));
      for (Index c = 0; c < k; ++c)
        own(j, c + 1) = change(own(j, c + 1), total * side.moments[j] * side.bends[c],
                               static_cast<Scalar>(options_.ridge.factors));
    }
    own.rightCols(k) = own.rightCols(k) * side.turns.transpose();
    if (side.axes.size() > 0) own = side.axes * own;
    result.features.middleRows(side.first, side.count) = own;
  }
  if (v.squares.size() > 0) {
    Vector<Scalar> own = v.squares;
    if (square_axes_.size() > 0) own = square_axes_.transpose() * own;
    for (Index j = 0; j < own.size(); ++j)
      own[j] = change(own[j], total * square_moments_[j], static_cast<Scalar>(options_.ridge.weights));
    result.squares = square_axes_.size() > 0 ? Vector<Scalar>(square_axes_ * own) : own;
  }
  result.intercept = change(v.intercept, total, Scalar(0));
  if (!options_.linear) result.features.col(0).setZero();
  return result;
}

template <typename Scalar>
Direction<Scalar> Preconditioner<Scalar>::damped(const Direction<Scalar>& v, double damping) const {
  return changed(v, [by = static_cast<Scalar>(damping)](Scalar x, Scalar bend, Scalar) { return x * by * bend; });
}

template <typename Scalar>
Direction<Scalar> Preconditioner<Scalar>::solved(const Direction<Scalar>& v, double damping) const {
  return changed(v, [by = static_cast<Scalar>(1 + damping)](Scalar x, Scalar bend, Scalar ridge) {
    return x / (by * bend + ridge);
  });
}

template class Preconditioner<float>;
template class Preconditioner<double>;

}  // namespace dyad
