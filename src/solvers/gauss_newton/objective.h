#pragma once

#include <memory>

#include "solvers/gauss_newton/in_memory_equations.h"

namespace dyad {

/// The parameters plus a step.
SignedFactors<double> moved(SignedFactors<double> parameters, const ParameterVector& step);

/// Sum over rows of half squared residuals or log-losses, with its negative gradient J'r and its Gauss-Newton matrix
/// J'HJ, where J are the derivatives of the predictions. Each product is one pass over all rows.
class Objective {
 public:
  Objective(std::shared_ptr<const NormalEquations> equations, const NewtonOptions& options);
  /// Of rows in memory, which the caller keeps alive, like the thread pool.
  Objective(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool)
      : Objective(std::make_shared<InMemoryNormalEquations>(rows, options, pool), options) {}

  /// Evaluates at these parameters. Returns the weighted mean loss.
  double move_to(const SignedFactors<double>& parameters);

  /// J'r.
  [[nodiscard]] const ParameterVector& negative_gradient() const { return negative_gradient_; }

  /// J'HJ t.
  [[nodiscard]] ParameterVector curvature_times(const ParameterVector& t) const;

  /// Whether `solve_dual` costs less than conjugate gradients with `curvature_times`.
  [[nodiscard]] bool prefers_dual() const { return equations_->prefers_dual(); }
  /// t of (J'HJ + D) t = J'r - offset, for a diagonal D > 0.
  [[nodiscard]] ParameterVector solve_dual(const ParameterVector& D, const ParameterVector& offset) const;

  /// sum_i h_i p_i p_i' of the projections p = A'x of one side (symmetric: left), which is the curvature with respect
  /// to the factors of the other side.
  [[nodiscard]] const Small<double>& projection_products(bool right) const { return products_of_sides_[right ? 1 : 0]; }
  [[nodiscard]] double total_curvature() const { return total_curvature_; }
  [[nodiscard]] double total_weight() const { return total_weight_; }
  /// Mean loss of the best constant prediction.
  [[nodiscard]] double constant_loss() const { return constant_loss_; }

  [[nodiscard]] Index products() const { return products_; }  ///< passes over all rows so far

 private:
  /// J'e with the terms of a removed diagonal.
  [[nodiscard]] ParameterVector vector_of(const RowSums& sums) const;

  std::shared_ptr<const NormalEquations> equations_;
  NewtonOptions options_;
  double total_weight_ = 0;
  double constant_loss_ = 0;
  SignedFactors<double> parameters_;
  double total_curvature_ = 0;
  std::array<Small<double>, 2> products_of_sides_;
  ParameterVector negative_gradient_;
  mutable Index products_ = 0;
};

}  // namespace dyad
