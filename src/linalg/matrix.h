#pragma once

#include <vector>

#include <Eigen/Core>

#include <dyad/rows.h>

#include "base/random.h"

namespace dyad {

/// One row per feature, so that a sparse row gathers short contiguous runs.
template <typename Scalar>
using Tall = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename Scalar>
using Small = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

template <typename Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

template <typename Scalar>
auto as_vector(const std::vector<Scalar>& numbers) {
  return Eigen::Map<const Vector<Scalar>>(numbers.data(), static_cast<Index>(numbers.size()));
}

template <typename Scalar>
auto as_vector(std::vector<Scalar>& numbers) {
  return Eigen::Map<Vector<Scalar>>(numbers.data(), static_cast<Index>(numbers.size()));
}

template <typename Scalar>
auto as_tall(const std::vector<Scalar>& numbers, Index rows, Index columns) {
  return Eigen::Map<const Tall<Scalar>>(numbers.data(), rows, columns);
}

template <typename Scalar>
auto as_tall(std::vector<Scalar>& numbers, Index rows, Index columns) {
  return Eigen::Map<Tall<Scalar>>(numbers.data(), rows, columns);
}

/// New features at the end of their side: those of x (symmetric models: of all, with no right side) or those of z.
struct Growth {
  Index left_before = 0;
  Index right_before = 0;
  Index left_after = 0;
  Index right_after = 0;

  [[nodiscard]] bool is_none() const { return left_before == left_after && right_before == right_after; }

  /// The same numbers, one row per feature, with zeros for the new ones.
  template <typename Matrix>
  [[nodiscard]] typename Matrix::PlainObject grown(const Matrix& before) const {
    typename Matrix::PlainObject after = Matrix::PlainObject::Zero(left_after + right_after, before.cols());
    after.topRows(left_before) = before.topRows(left_before);
    after.middleRows(left_after, right_before) = before.bottomRows(right_before);
    return after;
  }
};

/// Independent standard normal numbers.
template <typename Scalar>
Tall<Scalar> random_normal(Random& random, Index rows, Index columns);

}  // namespace dyad
