#pragma once

#include <vector>

#include <Eigen/Core>

#include <dyad/rows.h>

#include "base/random.h"

namespace dyad {

/// Dense row-major matrix. Parameter matrices have one row per feature, so that the numbers of a feature are
/// contiguous.
template <typename Scalar>
using RowMajorMatrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Dense column-major matrix, Eigen's default, which its decompositions expect.
template <typename Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

/// Dense column vector.
template <typename Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

/// Views of a std::vector as an Eigen vector or row-major matrix. The views do not own the numbers.
template <typename Scalar>
auto as_vector(const std::vector<Scalar>& numbers) {
  return Eigen::Map<const Vector<Scalar>>(numbers.data(), static_cast<Index>(numbers.size()));
}

template <typename Scalar>
auto as_vector(std::vector<Scalar>& numbers) {
  return Eigen::Map<Vector<Scalar>>(numbers.data(), static_cast<Index>(numbers.size()));
}

template <typename Scalar>
auto as_row_major(const std::vector<Scalar>& numbers, Index rows, Index columns) {
  return Eigen::Map<const RowMajorMatrix<Scalar>>(numbers.data(), rows, columns);
}

template <typename Scalar>
auto as_row_major(std::vector<Scalar>& numbers, Index rows, Index columns) {
  return Eigen::Map<RowMajorMatrix<Scalar>>(numbers.data(), rows, columns);
}

/// Feature counts before and after new features are added. A bilinear model x'Mz has left features (x) followed by
/// right features (z); a symmetric model has left features only. New features are appended at the end of their side.
struct FeatureGrowth {
  Index left_before = 0;
  Index right_before = 0;
  Index left_after = 0;
  Index right_after = 0;

  /// True if no feature is added.
  [[nodiscard]] bool is_empty() const { return left_before == left_after && right_before == right_after; }

  /// Copies a matrix with one row per feature and inserts rows of zeros for the new features.
  template <typename Dense>
  [[nodiscard]] typename Dense::PlainObject insert_zero_rows(const Dense& before) const {
    typename Dense::PlainObject after = Dense::PlainObject::Zero(left_after + right_after, before.cols());
    after.topRows(left_before) = before.topRows(left_before);
    after.middleRows(left_after, right_before) = before.bottomRows(right_before);
    return after;
  }
};

/// Matrix of independent standard normal numbers, drawn row by row.
template <typename Scalar>
RowMajorMatrix<Scalar> random_normal(Random& random, Index rows, Index columns);

}  // namespace dyad
