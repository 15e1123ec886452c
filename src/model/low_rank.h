#pragma once

#include <vector>

#include <dyad/model.h>

#include "linalg/matrix.h"
#include "model/sides.h"

namespace dyad {

/// Eigenvalues that truncate_to_rank() retains. Ignored for bilinear models, whose singular values are not negative.
enum class EigenvalueSelection {
  largest,   ///< the k eigenvalues of largest magnitude
  positive,  ///< the k largest positive eigenvalues; padded with 0 if fewer than k are positive
};

/// Matrix M = V diag(values) V', or V_left diag(values) V_right' (bilinear).
template <typename Scalar>
struct LowRankFactorization {
  RowMajorMatrix<Scalar> vectors;  ///< V; bilinear: V_left above V_right. Each has orthonormal columns
  Vector<Scalar> values;           ///< eigenvalues or singular values by decreasing magnitude
};

/// Best rank-k approximation (Eckart-Young) of C_left S C_right'. Symmetric models have C_left = C_right = C and a
/// symmetric S. Computed in double precision from a thin QR of each side, C = QR, and the eigendecomposition
/// (symmetric) or SVD (bilinear) of the small matrix R_left S R_right', whose size must be at least k x k.
template <typename Scalar>
LowRankFactorization<Scalar> truncate_to_rank(const Sides& sides, Matrix<Scalar> C, const Matrix<Scalar>& S, Index k,
                                              EigenvalueSelection selection);

/// Spectral norm |C_left S C_right'|_2, computed like truncate_to_rank().
double spectral_norm(const Sides& sides, const Matrix<double>& C, const Matrix<double>& S);

/// [left, right].
template <typename Scalar>
Matrix<Scalar> concatenate_columns(const Eigen::Ref<const RowMajorMatrix<Scalar>>& left,
                                   const Eigen::Ref<const RowMajorMatrix<Scalar>>& right) {
  Matrix<Scalar> result(left.rows(), left.cols() + right.cols());
  result << left, right;
  return result;
}

/// Sets the factors and the spectrum of the model to those of M.
template <typename Scalar>
void set_interactions(Model<Scalar>& model, const LowRankFactorization<Scalar>& M);

/// Diagonal M_jj of a symmetric model, without `squares`.
template <typename Scalar>
Vector<Scalar> diagonal_of_interactions(const Model<Scalar>& model);

/// Gradient of the second-order terms at x: 2 (M + diag(squares)) x. Bilinear, at [x, z]: [M z, M'x].
template <typename Scalar>
Vector<Scalar> interaction_gradient(const Model<Scalar>& model, const Vector<Scalar>& x);

/// Sets all parameters of the features j with cleared[j] to 0 and factorizes M again. All coefficients of the other
/// features and their pairs stay the same up to rounding.
void clear_features(Model<double>& model, const std::vector<bool>& cleared);

}  // namespace dyad
