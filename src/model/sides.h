#pragma once

#include <dyad/model.h>

#include "base/thread_pool.h"
#include "linalg/decompositions.h"
#include "linalg/matrix.h"

namespace dyad {

/// Splits rows and parameters into the two arguments of the bilinear form x'Mz. Rows of bilinear models are [x, z];
/// symmetric models have z = x. Matrices with one row per feature are split the same way: left (x) above right (z).
struct Sides {
  Index dim;       ///< number of features of a row
  Index left_dim;  ///< number of features of x; 0: symmetric

  template <typename Scalar>
  explicit Sides(const Model<Scalar>& model) : dim(model.dim()), left_dim(model.left_dim) {}
  Sides(Index total_dim, Index x_dim) : dim(total_dim), left_dim(x_dim) {}

  [[nodiscard]] bool is_bilinear() const { return left_dim > 0; }
  [[nodiscard]] Index left_count() const { return is_bilinear() ? left_dim : dim; }
  /// Index of the first feature of z.
  [[nodiscard]] Index right_first() const { return left_dim; }
  [[nodiscard]] Index right_count() const { return dim - left_dim; }
  /// Features of x and of z as ranges of columns.
  [[nodiscard]] IndexRange left_columns() const { return {0, left_count()}; }
  [[nodiscard]] IndexRange right_columns() const { return {right_first(), right_count()}; }

  template <typename Dense>
  [[nodiscard]] auto left(Dense&& A) const {
    return A.topRows(left_count());
  }
  template <typename Dense>
  [[nodiscard]] auto right(Dense&& A) const {
    return A.bottomRows(right_count());
  }
  template <typename Scalar>
  [[nodiscard]] Rows<Scalar> left(const Rows<Scalar>& rows) const {
    return is_bilinear() ? rows.feature_slice(0, left_count()) : rows;
  }
  template <typename Scalar>
  [[nodiscard]] Rows<Scalar> right(const Rows<Scalar>& rows) const {
    return is_bilinear() ? rows.feature_slice(right_first(), right_count()) : rows;
  }

  /// Orthonormal bases of the column spaces of the left and the right side of A.
  template <typename Scalar>
  [[nodiscard]] RowMajorMatrix<Scalar> orthonormal_sides(const RowMajorMatrix<Scalar>& A) const {
    if (!is_bilinear()) return orthonormalize<Scalar>(A);
    RowMajorMatrix<Scalar> Q(A.rows(), A.cols());
    Q << orthonormalize<Scalar>(left(A)), orthonormalize<Scalar>(right(A));
    return Q;
  }

  /// M Z; bilinear: M Z_right above M' Z_left.
  template <typename Scalar>
  [[nodiscard]] RowMajorMatrix<Scalar> interactions_times(const Model<Scalar>& model,
                                                          const RowMajorMatrix<Scalar>& Z) const {
    const auto U = as_row_major(model.factors, model.dim(), model.rank());
    const auto lambda = as_vector(model.spectrum).asDiagonal();
    if (!is_bilinear()) return U * (lambda * (U.transpose() * Z));
    RowMajorMatrix<Scalar> product(Z.rows(), Z.cols());
    product << left(U) * (lambda * (right(U).transpose() * right(Z))),
        right(U) * (lambda * (left(U).transpose() * left(Z)));
    return product;
  }
};

}  // namespace dyad
