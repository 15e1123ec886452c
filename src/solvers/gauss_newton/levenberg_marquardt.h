#pragma once

#include <memory>

#include "solvers/gauss_newton/objective.h"
#include "solvers/gauss_newton/preconditioner.h"

namespace dyad {

/// Levenberg-Marquardt: Gauss-Newton steps (J'HJ + ridge + damping D) t = J'r - ridge theta, with a damping that
/// follows the ratio of actual to predicted decrease. Steps are solved by preconditioned conjugate gradients, or by a
/// Cholesky decomposition with one equation per row if there are few rows. Refers to the options, which the caller
/// keeps alive and may change between two calls of `start`.
class LevenbergMarquardt {
 public:
  LevenbergMarquardt(const std::shared_ptr<const NormalEquations>& equations, const NewtonOptions& options);
  /// On rows in memory, which the caller keeps alive, like the thread pool.
  LevenbergMarquardt(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool)
      : LevenbergMarquardt(std::make_shared<InMemoryNormalEquations>(rows, options, pool), options) {}

  void start(SignedFactors<double> parameters);

  /// Tries a step and updates the damping. Returns false if it has converged, diverged or been interrupted.
  bool step();

  /// Takes steps until `step` returns false, at most 60.
  void run();

  /// Newton steps with the full Hessian from near a minimum, until the gradient is zero up to rounding or after
  /// `max_products` passes over the rows.
  void polish(Index max_products);

  [[nodiscard]] const SignedFactors<double>& parameters() const { return parameters_; }
  [[nodiscard]] double loss() const { return loss_; }            ///< weighted mean, without the ridge
  [[nodiscard]] double objective() const { return objective_; }  ///< weighted mean, with the ridge
  [[nodiscard]] bool is_exact() const;                           ///< the residuals are rounding errors
  [[nodiscard]] double total_weight() const { return rows_.total_weight(); }
  [[nodiscard]] double constant_loss() const { return rows_.constant_loss(); }  ///< of the best constant prediction
  [[nodiscard]] Index steps() const { return steps_; }
  [[nodiscard]] Index products() const { return rows_.products(); }  ///< passes over all rows

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// to += scale * ridge * (weights, factors, squares).
  void add_ridge(double scale, const Vector<double>& weights, const Tall<double>& factors,
                 const Vector<double>& squares, ParameterVector& to) const;
  [[nodiscard]] double ridge_of(const SignedFactors<double>& parameters) const;
  /// J'r - ridge theta.
  [[nodiscard]] ParameterVector negative_gradient() const;
  ParameterVector solve(double tolerance);
  ParameterVector solve_dual();
  ParameterVector negative_gradient_at(SignedFactors<double> parameters);
  ParameterVector newton_step(const ParameterVector& gradient, double damping, Index last_product);

  const NewtonOptions& options_;
  double epsilon_;  ///< relative rounding error of the rows
  Objective rows_;
  Preconditioner preconditioner_;
  SignedFactors<double> parameters_;
  double loss_ = 0;
  double objective_ = 0;
  double damping_ = 0;
  double predicted_gain_ = 0;
  int stalled_ = 0;         ///< consecutive steps with little progress
  bool has_moved_ = false;  ///< `rows_` is at other parameters than `parameters_`
  Index steps_ = 0;
};

}  // namespace dyad
