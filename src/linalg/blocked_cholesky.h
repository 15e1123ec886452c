#pragma once

#include "linalg/matrix.h"

namespace dyad {

/// Cholesky decomposition K = L L' of a symmetric positive definite matrix. Works on blocks of rows, whose products are
/// computed by gemm(), so that it is as fast as the kernels of the BLAS library. Immutable.
class Cholesky {
 public:
  /// Decomposes K, of which only the lower triangle is read.
  explicit Cholesky(RowMajorMatrix<double> K);

  /// False if a pivot is not positive. The solutions are then undefined.
  [[nodiscard]] bool is_positive_definite() const { return is_positive_definite_; }
  /// L^-1 B.
  [[nodiscard]] RowMajorMatrix<double> solve_lower(RowMajorMatrix<double> B) const;
  /// L'^-1 b.
  [[nodiscard]] Vector<double> solve_upper(const Vector<double>& b) const;

 private:
  RowMajorMatrix<double> L_;  ///< the upper triangle is undefined
  bool is_positive_definite_ = false;
};

}  // namespace dyad
