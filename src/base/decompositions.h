#pragma once

#include "base/linear_algebra.h"

namespace dyad {

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

/// Inverts what can be inverted of A, and leaves the rest out.
template <typename Scalar>
Small<Scalar> pseudo_inverse(const Small<Scalar>& A);

}  // namespace dyad
