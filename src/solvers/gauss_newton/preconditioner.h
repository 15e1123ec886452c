#pragma once

#include <array>

#include <Eigen/Cholesky>

#include "solvers/gauss_newton/objective.h"

namespace dyad {

/// Approximation of the Gauss-Newton matrix J'HJ by moments of the features. The block of weights, squares and
/// intercept is the matrix of second moments of (1, x, x^2). The block of the factors is, for Gaussian features, the
/// Kronecker product C (x) K of the second moments C of the features and K of the derivatives 2 S A'x. With many
/// features, or few rows, only the diagonals are used. Refers to the options, which the caller keeps alive.
class Preconditioner {
 public:
  Preconditioner(const NormalEquations& equations, const NewtonOptions& options);

  /// Computes K at the parameters at which the objective was evaluated last.
  void move_to(const Objective& objective, const SignedFactors<double>& parameters);
  /// Adds `damping` times the diagonal to the matrix that `solved` inverts.
  void set_damping(double damping);

  /// damping D v, where D is the diagonal of the matrix, bounded away from 0.
  [[nodiscard]] ParameterVector damped(const ParameterVector& v) const;
  /// Approximately (C + damping D + ridge)^-1 v, where C is the matrix.
  [[nodiscard]] ParameterVector solved(const ParameterVector& v) const;

 private:
  /// The features of one side.
  struct Side {
    Index first = 0;
    Index count = 0;
    Small<double> axes;              ///< eigenvectors of C; empty: C is diagonal
    Vector<double> moments;          ///< eigenvalues of C
    Small<double> factor_axes;       ///< eigenvectors of K
    Vector<double> factor_moments;   ///< eigenvalues of K
    Vector<double> factor_diagonal;  ///< diagonal of K
  };

  void compute_moments(const NormalEquations& equations);
  [[nodiscard]] Index linear_count() const { return 1 + dim_ + (has_squares() ? dim_ : 0); }
  [[nodiscard]] bool has_squares() const { return options_.shape.diagonal == Diagonal::free; }
  [[nodiscard]] Vector<double> linear_part(const ParameterVector& v) const;
  void set_linear_part(const Vector<double>& part, ParameterVector& v) const;

  const NewtonOptions& options_;
  Index dim_;
  std::array<Side, 2> sides_;
  Index side_count_ = 1;
  Small<double> linear_;            ///< second moments of (1, x, x^2); empty: only their diagonal is used
  Vector<double> linear_diagonal_;  ///< diagonal of it
  Eigen::LLT<Small<double>> linear_solver_;
  double total_curvature_ = 1;
  double damping_ = 0;
};

}  // namespace dyad
