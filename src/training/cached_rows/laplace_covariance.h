#pragma once

#include <functional>

#include "data/observed_rows.h"
#include "model/signed_factors.h"

namespace dyad {

/// Covariance of least-squares parameters (Laplace approximation): s2 (J'HJ)^-1 with the Jacobian J of the predictions
/// at the fit, the row weights H and the noise variance s2. M = A diag(signs) A' is invariant to the transformations
/// A -> A + A K diag(signs) with skew-symmetric K (bilinear: A_left -> A_left G, A_right -> A_right G'^-1). J has zero
/// columns in these directions. They are added to J'HJ with unit precision, which does not change the covariance of M.
/// O(n p^2 + p^3) operations for p parameters. Immutable.
class LaplaceCovariance {
 public:
  LaplaceCovariance(const ObservedRows& rows, const ModelShape& shape, const SignedFactors<double>& parameters,
                    double noise_variance);

  /// Whether the work for `rows` is small enough, about 10 s on one core.
  static bool can_compute(const ObservedRows& rows, const ModelShape& shape);

  /// Whether the rows determine all unknowns. False if J has linearly dependent columns, for example because a feature
  /// is zero or repeated.
  [[nodiscard]] bool is_identifiable() const { return is_identifiable_; }

  /// Mean squared leave-one-out residual, sum_i h_i (r_i / (1 - l_i))^2 / sum_i h_i, in the linear approximation at the
  /// fit: l_i is the leverage of row i, the derivative of its prediction with respect to its target. Reads the rows
  /// again. Requires is_identifiable() and noise.
  [[nodiscard]] double leave_one_out_error(const ObservedRows& rows, const Vector<double>& residuals) const;

  /// Standard errors of the entries of M, dim x dim (bilinear: left x right). Requires is_identifiable().
  [[nodiscard]] Matrix<double> matrix_errors() const;
  /// Standard errors of the entries of A, for rank 1: the signal of phase retrieval. Requires is_identifiable().
  [[nodiscard]] Vector<double> factor_errors() const;
  /// Standard errors of w. Requires is_identifiable() and a model with weights.
  [[nodiscard]] Vector<double> weight_errors() const;

 private:
  [[nodiscard]] Index factor_index(Index feature, Index factor) const {
    return first_factor_ + feature * rank_ + factor;
  }
  /// Calls task(first, J) with blocks of rows of H^1/2 J, of which the first J.rows() belong to the rows from `first`.
  void visit_jacobian(
      const ObservedRows& rows,
      const std::function<void(Index first, const Eigen::Ref<const RowMajorMatrix<double>>& J)>& task) const;
  void add_invariant_directions();

  ModelShape shape_;
  SignedFactors<double> parameters_;
  double noise_variance_;
  Index rank_;
  Index first_weight_;      ///< position of w among the parameters
  Index first_square_;      ///< position of the squares
  Index first_factor_;      ///< position of A, row by row
  Index count_;             ///< number of parameters p
  Matrix<double> inverse_;  ///< (J'HJ)^-1; 0 without noise
  bool is_identifiable_ = false;
};

}  // namespace dyad
