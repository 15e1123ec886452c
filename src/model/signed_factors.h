#pragma once

#include <span>

#include <dyad/model.h>
#include <dyad/rows.h>
#include <dyad/shape.h>

#include "linalg/matrix.h"

namespace dyad {

/// The same model in the form in which single rows and Gauss-Newton steps move it: M = A diag(signs) A', or
/// M = A_left diag(signs) A_right' with the two one above the other. Every number in it is free.
template <typename Scalar>
struct SignedFactors {
  Index left_dim = 0;  ///< as in Model
  Diagonal diagonal = Diagonal::tied;
  Scalar intercept = 0;
  Vector<Scalar> weights;
  Vector<Scalar> squares;  ///< the coefficient of x_j^2 where the diagonal is free; else empty
  Tall<Scalar> A;
  Vector<Scalar> signs;

  [[nodiscard]] Index dim() const { return weights.size(); }
  [[nodiscard]] Index rank() const { return signs.size(); }

  template <typename Other>
  [[nodiscard]] SignedFactors<Other> cast() const {
    return {left_dim,
            diagonal,
            static_cast<Other>(intercept),
            weights.template cast<Other>(),
            squares.template cast<Other>(),
            A.template cast<Other>(),
            signs.template cast<Other>()};
  }

  /// Factors of strength 0 have no slope to move along, so each is given `least` of the strongest one's.
  static SignedFactors of(const Model<Scalar>& model, Diagonal diagonal, Scalar least);
  [[nodiscard]] Model<Scalar> model() const;

  /// Of x_j^2 beside x'A diag(signs) A'x: off the diagonal, what A puts there is taken back. Empty where it is tied.
  [[nodiscard]] Vector<Scalar> square_coefficients() const;

  /// Writes one prediction per row. Runs on the calling thread.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;

  /// The same function of features that are `factors` times as small.
  void scale_features(std::span<const double> factors);
};

/// +1, -1, +1, ...
template <typename Scalar>
Vector<Scalar> alternating_signs(Index rank);

}  // namespace dyad
