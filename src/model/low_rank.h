#pragma once

#include <dyad/model.h>

#include "base/linear_algebra.h"

namespace dyad {

/// Which eigenvalues to keep: the largest by size, or the largest positive ones (missing ones are 0).
enum class Keep { largest, positive };

template <typename Scalar>
struct EigenForm {
  Tall<Scalar> vectors;   ///< orthonormal columns
  Vector<Scalar> values;  ///< strongest first
};

/// The best rank-k part of the symmetric matrix C S C', from one thin QR of C and one eigenproblem of the size of S.
template <typename Scalar>
EigenForm<Scalar> best_rank_k(const Small<Scalar>& C, const Small<Scalar>& S, Index k, Keep keep);

/// |C S C'|_2, the same way.
template <typename Scalar>
Scalar spectral_norm(const Small<Scalar>& C, const Small<Scalar>& S);

/// [left, right], side by side.
template <typename Scalar>
Small<Scalar> side_by_side(const Eigen::Ref<const Tall<Scalar>>& left, const Eigen::Ref<const Tall<Scalar>>& right) {
  Small<Scalar> both(left.rows(), left.cols() + right.cols());
  both << left, right;
  return both;
}

/// Copies U and lambda into the model's M.
template <typename Scalar>
void set_interactions(Model<Scalar>& model, const EigenForm<Scalar>& M);

}  // namespace dyad
