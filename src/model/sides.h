#pragma once

#include <dyad/model.h>

#include "base/thread_pool.h"
#include "linalg/decompositions.h"
#include "linalg/matrix.h"

namespace dyad {

/// The two vectors that M stands between: a row twice (symmetric), or its left and its right part (bilinear). Matrices
/// with one row per feature are split the same way.
struct Sides {
  Index dim;
  Index left_dim;  ///< 0: symmetric

  template <typename Scalar>
  explicit Sides(const Model<Scalar>& model) : dim(model.dim()), left_dim(model.left_dim) {}
  Sides(Index all, Index left) : dim(all), left_dim(left) {}

  [[nodiscard]] bool two() const { return left_dim > 0; }
  [[nodiscard]] Index left_count() const { return two() ? left_dim : dim; }
  [[nodiscard]] Index right_first() const { return left_dim; }
  [[nodiscard]] Index right_count() const { return dim - left_dim; }
  [[nodiscard]] Share left_columns() const { return {0, left_count()}; }
  [[nodiscard]] Share right_columns() const { return {right_first(), right_count()}; }

  template <typename Matrix>
  [[nodiscard]] auto left(Matrix&& A) const {
    return A.topRows(left_count());
  }
  template <typename Matrix>
  [[nodiscard]] auto right(Matrix&& A) const {
    return A.bottomRows(right_count());
  }
  template <typename Scalar>
  [[nodiscard]] Rows<Scalar> left(const Rows<Scalar>& rows) const {
    return two() ? rows.window(0, left_count()) : rows;
  }
  template <typename Scalar>
  [[nodiscard]] Rows<Scalar> right(const Rows<Scalar>& rows) const {
    return two() ? rows.window(right_first(), right_count()) : rows;
  }

  /// Orthonormal columns with the span of A, each side for itself.
  template <typename Scalar>
  [[nodiscard]] Tall<Scalar> orthonormal_sides(const Tall<Scalar>& A) const {
    if (!two()) return orthonormal<Scalar>(A);
    Tall<Scalar> Q(A.rows(), A.cols());
    Q << orthonormal<Scalar>(left(A)), orthonormal<Scalar>(right(A));
    return Q;
  }

  /// The product of the operator x'Mz with both sides: M Z, or [M Z_right, M' Z_left] one above the other.
  template <typename Scalar>
  [[nodiscard]] Tall<Scalar> interactions_times(const Model<Scalar>& model, const Tall<Scalar>& Z) const {
    const auto U = as_tall(model.factors, model.dim(), model.rank());
    const auto lambda = as_vector(model.spectrum).asDiagonal();
    if (!two()) return U * (lambda * (U.transpose() * Z));
    Tall<Scalar> product(Z.rows(), Z.cols());
    product << left(U) * (lambda * (right(U).transpose() * right(Z))),
        right(U) * (lambda * (left(U).transpose() * left(Z)));
    return product;
  }
};

}  // namespace dyad
