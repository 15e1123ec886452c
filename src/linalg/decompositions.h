#pragma once

#include "linalg/matrix.h"

namespace dyad {

// The folder linalg contains matrix types, decompositions, SIMD vectors, and products of rows with dense matrices.
//
// This file declares decompositions of dense matrices. All are computed in double precision, also for float matrices.
// Only decompositions.cpp and orthonormal_basis.cpp instantiate them, because Eigen's decompositions compile slowly.

/// QR decomposition A = Q R by Householder reflections. Q has min(rows, columns) orthonormal columns.
template <typename Scalar>
class ThinQr {
 public:
  explicit ThinQr(Matrix<Scalar> A);

  [[nodiscard]] Matrix<Scalar> R() const;
  /// Q B, in O(rows x columns x B.cols()) operations, without forming Q.
  [[nodiscard]] Matrix<Scalar> apply_Q(const Matrix<Scalar>& B) const;

 private:
  Matrix<double> reflections_;   ///< Householder vectors below the diagonal, R on and above it
  Vector<double> coefficients_;  ///< of the reflections
};

/// Factor Q of the QR decomposition of A, which has at least as many rows as columns. The columns of Q are orthonormal.
/// They span the column space of A if A has full column rank, and contain it in their span otherwise.
template <typename Scalar>
RowMajorMatrix<Scalar> orthonormalize(const RowMajorMatrix<Scalar>& A);

/// Random matrix with orthonormal columns; their span is uniformly distributed.
template <typename Scalar>
RowMajorMatrix<Scalar> random_orthonormal(Random& random, Index rows, Index columns) {
  return orthonormalize(random_normal<Scalar>(random, rows, columns));
}

/// Eigendecomposition A = vectors diag(values) vectors' of a symmetric matrix, with values in ascending order.
template <typename Scalar>
struct SymmetricEigen {
  Vector<Scalar> values;
  Matrix<Scalar> vectors;
};

/// Decomposes the symmetric part (A + A') / 2.
template <typename Scalar>
SymmetricEigen<Scalar> symmetric_eigen(const Matrix<Scalar>& A);

/// Tridiagonal form T = Q'AQ of a symmetric matrix A and b = Q'a for a vector a, where Q is orthogonal. Functions of A
/// that are invariant under rotation take O(n) operations.
struct SymmetricTridiagonal {
  Vector<double> diagonal;
  Vector<double> subdiagonal;
  Vector<double> rotated;  ///< b

  /// 1/2 [theta a'(I + theta A)^-1 a - log det(I + theta A)] by the factorization L D L' of I + theta T.
  [[nodiscard]] double log_evidence_gain(double theta) const;
};

/// Tridiagonalizes A by Householder reflections.
SymmetricTridiagonal tridiagonalize(const Matrix<double>& A, const Vector<double>& a);

/// Singular value decomposition A = left diag(values) right'. `left` and `right` are square and orthogonal; values are
/// in descending order.
template <typename Scalar>
struct Svd {
  Matrix<Scalar> left;
  Vector<Scalar> values;
  Matrix<Scalar> right;
};

/// Computes the singular value decomposition by Jacobi rotations.
template <typename Scalar>
Svd<Scalar> compute_svd(const Matrix<Scalar>& A);

/// Moore-Penrose inverse, computed by a complete orthogonal decomposition with Eigen's default rank threshold.
template <typename Scalar>
Matrix<Scalar> pseudo_inverse(const Matrix<Scalar>& A);

}  // namespace dyad
