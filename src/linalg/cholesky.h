#pragma once

#include <vector>

#include "linalg/matrix.h"

namespace dyad {

/// Computes the lower triangular factor L of A = L L' and its inverse by recursive blocking, in 2/3 n^3 operations, of
/// which all but O(n^2) are matrix products on the calling thread. Reads the lower triangle of A, which is replaced by
/// L; the strict upper triangle of `inverse` becomes 0. Returns false if A is not positive definite.
bool factorize_and_invert(RowMajorMatrix<double>& A, RowMajorMatrix<double>& inverse);

/// Decomposition C = L L' of a positive semidefinite matrix with diagonal pivoting, where L has as many columns as the
/// numerical rank of C.
class PivotedCholesky {
 public:
  explicit PivotedCholesky(Matrix<double> C);

  /// L.
  [[nodiscard]] const Matrix<double>& factor() const { return factor_; }
  /// X with L X = B, for columns of B in the span of L.
  [[nodiscard]] Matrix<double> solve(const Matrix<double>& B) const;

 private:
  Matrix<double> factor_;
  std::vector<Index> pivots_;  ///< rows of C in the order of the columns of L
};

}  // namespace dyad
