#pragma once

#include <memory>

#include "solvers/gauss_newton/in_memory_equations.h"

namespace dyad {

/// Returns the parameters plus a step.
SignedFactors<double> apply_step(SignedFactors<double> parameters, const ParameterVector& step);

/// Sum over rows of the losses (half squared residuals or log-losses, without a ridge), with its negative gradient J'r
/// and its Gauss-Newton matrix J'HJ (see NormalEquations). Counts the passes over all rows. Not thread-safe.
class Objective {
 public:
  Objective(std::shared_ptr<const NormalEquations> equations, const NewtonOptions& options);
  /// For rows in memory. Does not own the rows and the thread pool; the caller keeps them alive.
  Objective(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool)
      : Objective(std::make_shared<InMemoryNormalEquations>(rows, options, pool), options) {}

  /// Evaluates the loss and its gradient at the parameters, to which all other functions then refer. Returns the
  /// weighted mean loss.
  double evaluate_at(const SignedFactors<double>& parameters);

  /// J'r.
  [[nodiscard]] const ParameterVector& negative_gradient() const { return negative_gradient_; }

  /// J'HJ t.
  [[nodiscard]] ParameterVector curvature_product(const ParameterVector& t) const;

  /// Whether `solve_dual` costs less than conjugate gradients with `curvature_product`.
  [[nodiscard]] bool prefers_dual() const { return equations_->prefers_dual(); }
  /// Solution t of (J'HJ + D) t = J'r - offset, for a diagonal D > 0.
  [[nodiscard]] ParameterVector solve_dual(const ParameterVector& D, const ParameterVector& offset) const;

  /// sum_i h_i p_i p_i' of the projections p = A'x of one side, which is the curvature with respect to the factors of
  /// the other side. Symmetric models have only the left side.
  [[nodiscard]] const Matrix<double>& projection_gram(bool right) const { return projection_grams_[right ? 1 : 0]; }
  [[nodiscard]] double total_curvature() const { return total_curvature_; }  ///< sum_i h_i
  [[nodiscard]] double total_weight() const { return total_weight_; }        ///< sum of the row weights
  /// Mean loss of the best constant prediction.
  [[nodiscard]] double constant_loss() const { return constant_loss_; }

  [[nodiscard]] Index passes() const { return passes_; }  ///< number of passes over all rows so far

 private:
  /// J'e from the sums of a data pass. Applies the correction of a zero or free diagonal, and sets the derivatives of
  /// parameters to 0 that the shape excludes.
  [[nodiscard]] ParameterVector to_parameter_vector(const RowSums& sums) const;

  std::shared_ptr<const NormalEquations> equations_;
  NewtonOptions options_;
  double total_weight_ = 0;
  double constant_loss_ = 0;
  SignedFactors<double> parameters_;
  double total_curvature_ = 0;
  std::array<Matrix<double>, 2> projection_grams_;  ///< left, right
  ParameterVector negative_gradient_;
  mutable Index passes_ = 0;
};

}  // namespace dyad
