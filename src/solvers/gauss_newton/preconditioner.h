#pragma once

#include <array>

#include <Eigen/Cholesky>

#include "solvers/gauss_newton/objective.h"

namespace dyad {

/// Preconditioner of conjugate gradients: approximates the Gauss-Newton matrix J'HJ by moments of the features.
///
/// The block of intercept, weights and squares is the sum of the curvatures times the matrix of second moments of
/// (1, x, x^2). The block of the factors is the sum of the curvatures times the Kronecker product C (x) K of the second
/// moments C of the features and K of the derivatives 2 S A'x, S = diag(signs) (bilinear: S A'z, where z is the other
/// side). It is the expectation of J'HJ if features, derivatives and curvatures are independent; the covariance of x
/// and A'x is neglected. For more than 512 features, and for fewer than two rows per entry of (1, x, x^2), only the
/// diagonals of C and of the second moments of (1, x, x^2) are used.
///
/// Does not own the options; the caller keeps them alive. Not thread-safe. Const functions can run concurrently.
class Preconditioner {
 public:
  Preconditioner(const NormalEquations& equations, const NewtonOptions& options);

  /// Computes K at the parameters at which the objective was evaluated last.
  void update(const Objective& objective, const SignedFactors<double>& parameters);
  /// Sets the multiple of D that `apply_damping` computes and that `solve` adds to the matrix.
  void set_damping(double damping);

  /// damping D v, where D is the diagonal of the approximate matrix, bounded away from 0.
  [[nodiscard]] ParameterVector apply_damping(const ParameterVector& v) const;
  /// Approximately (P + damping D + ridge)^-1 v, where P is the approximate matrix.
  [[nodiscard]] ParameterVector solve(const ParameterVector& v) const;

 private:
  /// Features [first, first + count) of one side, with the eigendecompositions of C and K.
  struct Side {
    Index first = 0;
    Index count = 0;
    Matrix<double> eigenvectors;         ///< of C; empty: C is diagonal
    Vector<double> eigenvalues;          ///< of C
    Matrix<double> factor_eigenvectors;  ///< of K; empty: K is diagonal
    Vector<double> factor_eigenvalues;   ///< of K
    Vector<double> factor_diagonal;      ///< diagonal of K
  };

  void compute_moments(const NormalEquations& equations);
  /// Number of entries of (1, x, x^2).
  [[nodiscard]] Index linear_count() const { return 1 + dim_ + (has_squares() ? dim_ : 0); }
  [[nodiscard]] bool has_squares() const { return options_.shape.diagonal == Diagonal::free; }
  /// Intercept, weights and squares of v in one vector.
  [[nodiscard]] Vector<double> pack_linear(const ParameterVector& v) const;
  /// Sets intercept, weights and squares of v, as far as the shape includes them.
  void unpack_linear(const Vector<double>& linear, ParameterVector& v) const;

  const NewtonOptions& options_;
  Index dim_;
  std::array<Side, 2> sides_;  ///< left, right; symmetric models use the first only
  Index side_count_ = 1;
  Matrix<double> linear_;                     ///< second moments of (1, x, x^2); empty: only the diagonal is used
  Vector<double> linear_diagonal_;            ///< diagonal of `linear_`, bounded away from 0
  Eigen::LLT<Matrix<double>> linear_solver_;  ///< of the damped linear block
  double total_curvature_ = 1;                ///< sum of the curvatures of all rows
  double damping_ = 0;
};

}  // namespace dyad
