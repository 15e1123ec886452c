#pragma once

#include "linalg/matrix.h"

namespace dyad {

/// Matrix decompositions. They are computed in double precision for either scalar type and are instantiated once, in
/// the .cpp files of this header: each takes seconds to compile.

/// A = QR with Q of min(rows, columns) orthonormal columns, by Householder reflections.
template <typename Scalar>
class ThinQr {
 public:
  explicit ThinQr(const Small<Scalar>& A);

  [[nodiscard]] Small<Scalar> R() const;
  /// Q B, in O(rows x columns x B.cols()).
  [[nodiscard]] Small<Scalar> Q_times(const Small<Scalar>& B) const;

 private:
  Small<double> reflections_;  ///< Householder vectors below the diagonal, R on and above it
  Vector<double> coefficients_;
};

/// Orthonormal columns with the span of A, which has at least as many rows as columns.
template <typename Scalar>
Tall<Scalar> orthonormal(const Tall<Scalar>& A);

/// Uniformly random orthonormal columns.
template <typename Scalar>
Tall<Scalar> random_orthonormal(Random& random, Index rows, Index columns) {
  return orthonormal(random_normal<Scalar>(random, rows, columns));
}

/// A = vectors diag(values) vectors', by its symmetric part; values rise.
template <typename Scalar>
struct SymmetricEigen {
  Vector<Scalar> values;
  Small<Scalar> vectors;
};

template <typename Scalar>
SymmetricEigen<Scalar> symmetric_eigen(const Small<Scalar>& A);

/// A = left diag(values) right', with square orthonormal sides; values fall.
template <typename Scalar>
struct SingularValues {
  Small<Scalar> left;
  Vector<Scalar> values;
  Small<Scalar> right;
};

template <typename Scalar>
SingularValues<Scalar> singular_values(const Small<Scalar>& A);

/// Moore-Penrose inverse, by a complete orthogonal decomposition.
template <typename Scalar>
Small<Scalar> pseudo_inverse(const Small<Scalar>& A);

}  // namespace dyad
