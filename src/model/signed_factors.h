#pragma once

#include <span>

#include <dyad/model.h>
#include <dyad/rows.h>
#include <dyad/shape.h>

#include "linalg/matrix.h"

namespace dyad {

/// Unconstrained parameters of a model, for solvers that update them by gradients: M = A diag(signs) A', or
/// M = A_left diag(signs) A_right' with A_left above A_right (bilinear). The columns of A need not be orthogonal.
template <typename Scalar>
struct SignedFactors {
  Index left_dim = 0;  ///< number of features of x (bilinear); 0: symmetric
  Diagonal diagonal = Diagonal::tied;
  Scalar intercept = 0;
  Vector<Scalar> weights;
  Vector<Scalar> squares;  ///< coefficients of x_j^2 if the diagonal is free; otherwise empty
  RowMajorMatrix<Scalar> A;
  Vector<Scalar> signs;  ///< +1 or -1 per factor; constant during training

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

  /// Converts a model: A = U diag(sqrt |lambda|). The gradient with respect to a zero column of A is zero, so
  /// |lambda_c| is raised to at least `min_relative_strength` times max |lambda|.
  static SignedFactors of(const Model<Scalar>& model, Diagonal diagonal, Scalar min_relative_strength);
  /// The model with orthonormal factors.
  [[nodiscard]] Model<Scalar> model() const;

  /// Coefficients q of the terms q_j x_j^2 that are added to x'A diag(signs) A'x. Diagonal zero: the negative diagonal
  /// of M; free: `squares` minus the diagonal of M; tied: empty.
  [[nodiscard]] Vector<Scalar> square_coefficients() const;

  /// Writes one prediction per row. Runs on the calling thread.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;

  /// Multiplies the parameters by powers of the factors, such that predictions stay the same after each feature x_j is
  /// divided by factors[j].
  void scale_features(std::span<const double> factors);
};

/// Initial signs +1, -1, +1, ...
template <typename Scalar>
Vector<Scalar> alternating_signs(Index rank);

}  // namespace dyad
