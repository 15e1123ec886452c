#pragma once

#include <span>

#include <dyad/model.h>
#include <dyad/rows.h>

#include "model/sides.h"
#include "model/signed_factors.h"

namespace dyad {

/// Evaluates y = b + w'x + sum_c s_c (U'x)_c (V'z)_c + q'(x * x) for the rows [x, z] of bilinear models; symmetric ones
/// have z = x and V = U. Refers to the parameters of a model, which must outlive it.
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

  /// `squares`: square_coefficients() of the parameters.
  ForwardPass(const SignedFactors<Scalar>& parameters, const Vector<Scalar>& squares)
      : sides_(parameters.dim(), parameters.left_dim),
        rank_(parameters.rank()),
        intercept_(parameters.intercept),
        weights_(parameters.weights.data()),
        factors_(parameters.A.data()),
        coefficients_(parameters.signs.data()),
        squares_(squares.size() > 0 ? squares.data() : nullptr) {}

  /// Writes one prediction per row, in O(rank) for each non-zero. Runs on the calling thread.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;

  /// The prediction of one row from its projections U'x and V'z (symmetric: U'x twice), w'x and q'(x * x).
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
  const Scalar* factors_;
  const Scalar* coefficients_;
  const Scalar* squares_;  ///< nullptr: all 0
};

extern template class ForwardPass<float>;
extern template class ForwardPass<double>;

}  // namespace dyad
