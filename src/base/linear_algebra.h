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

/// Orthonormal columns with the span of A, which has at least as many rows as columns.
template <typename Scalar>
Tall<Scalar> orthonormal(const Tall<Scalar>& A);

/// Independent standard normal numbers.
template <typename Scalar>
Tall<Scalar> random_normal(Random& random, Index rows, Index columns);

/// Uniformly random orthonormal columns.
template <typename Scalar>
Tall<Scalar> random_orthonormal(Random& random, Index rows, Index columns) {
  return orthonormal(random_normal<Scalar>(random, rows, columns));
}

}  // namespace dyad
