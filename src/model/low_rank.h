#pragma once

#include <vector>

#include <dyad/model.h>

#include "linalg/matrix.h"
#include "model/sides.h"

namespace dyad {

/// Which eigenvalues to keep: the largest by size, or the largest positive ones (missing ones are 0). Singular values
/// are positive anyway.
enum class Keep { largest, positive };

template <typename Scalar>
struct Factored {
  Tall<Scalar> vectors;   ///< orthonormal columns, each side for itself
  Vector<Scalar> values;  ///< strongest first
};

/// The best rank-k part of C_left S C_right', from a thin QR of each side of C and one eigenproblem (symmetric) or SVD
/// (bilinear) of the size of S, in double precision. Symmetric: both sides are C, and S is symmetric.
template <typename Scalar>
Factored<Scalar> best_rank_k(const Sides& sides, const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep);

/// |C_left S C_right'|_2, the same way.
double spectral_norm(const Sides& sides, const Small<double>& C, const Small<double>& S);

/// [left, right], side by side.
template <typename Scalar>
Small<Scalar> side_by_side(const Eigen::Ref<const Tall<Scalar>>& left, const Eigen::Ref<const Tall<Scalar>>& right) {
  Small<Scalar> both(left.rows(), left.cols() + right.cols());
  both << left, right;
  return both;
}

/// Copies U and lambda into the model's M.
template <typename Scalar>
void set_interactions(Model<Scalar>& model, const Factored<Scalar>& M);

/// M_jj for all j of a symmetric model.
template <typename Scalar>
Vector<Scalar> diagonal_of_interactions(const Model<Scalar>& model);

/// The derivative of the second-order terms at x: 2 (M + diag(squares)) x, or [M z, M'x] for x above z.
template <typename Scalar>
Vector<Scalar> interaction_slope(const Model<Scalar>& model, const Vector<Scalar>& x);

/// Sets all parameters of some features to 0. The coefficients of the others stay.
void clear_features(Model<double>& model, const std::vector<bool>& cleared);

}  // namespace dyad
