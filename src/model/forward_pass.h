#pragma once

#include <span>

#include <dyad/model.h>
#include <dyad/rows.h>

#include "model/sides.h"
#include "model/signed_factors.h"

namespace dyad {

/// src/model: parameters of second-order models, their posterior, low-rank factorizations and the forward pass.
///
/// ForwardPass evaluates y = b + w'x + sum_c s_c (U'x)_c (V'z)_c + q'(x * x), where * is elementwise. Rows of bilinear
/// models are [x, z], with w'x + v'z instead of w'x; symmetric models have z = x and V = U. The coefficients s are the
/// eigenvalues or singular values of a Model, or the signs of SignedFactors. Does not own the parameters; the
/// caller keeps them alive. Thread-safe.
template <typename Scalar>
class ForwardPass {
 public:
  explicit ForwardPass(const Model<Scalar>& model)
      : sides_(model),
        rank_(model.rank()),
        intercept_(model.intercept),
        weights_(model.weights.data()),
        factors_(model.factors.data()),
        coefficients_(model.spectrum.data()),
        squares_(model.squares.empty() ? nullptr : model.squares.data()) {}

  /// `squares`: q, the square_coefficients() of the parameters. Empty if all are 0.
  ForwardPass(const SignedFactors<Scalar>& parameters, const Vector<Scalar>& squares)
      : sides_(parameters.dim(), parameters.left_dim),
        rank_(parameters.rank()),
        intercept_(parameters.intercept),
        weights_(parameters.weights.data()),
        factors_(parameters.A.data()),
        coefficients_(parameters.signs.data()),
        squares_(squares.size() > 0 ? squares.data() : nullptr) {}

  /// Writes one prediction per row in O(rank) per non-zero. Runs on the calling thread.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;

  /// Prediction of one row from `left` = U'x, `right` = V'z (symmetric: U'x), `linear` = w'x, `square` = q'(x * x).
  [[nodiscard]] Scalar combine(const Scalar* left, const Scalar* right, Scalar linear, Scalar square) const {
    Scalar prediction = intercept_ + linear;
    for (Index c = 0; c < rank_; ++c) prediction += coefficients_[c] * left[c] * right[c];
    return prediction + square;
  }

 private:
  Sides sides_;
  Index rank_;
  Scalar intercept_;
  const Scalar* weights_;
  const Scalar* factors_;       ///< U; bilinear: U above V, row-major
  const Scalar* coefficients_;  ///< s
  const Scalar* squares_;       ///< q; nullptr if all entries are 0
};

extern template class ForwardPass<float>;
extern template class ForwardPass<double>;

}  // namespace dyad
