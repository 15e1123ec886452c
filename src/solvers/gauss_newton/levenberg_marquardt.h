#pragma once

#include <memory>

#include "solvers/gauss_newton/objective.h"
#include "solvers/gauss_newton/preconditioner.h"

namespace dyad {

/// Levenberg-Marquardt method (Nocedal and Wright 2006, section 10.3). A step t solves
/// (J'HJ + ridge + damping D) t = J'r - ridge theta, where D is a diagonal approximation of J'HJ. The damping follows
/// the ratio of actual to predicted decrease of the objective. The equations are solved by preconditioned conjugate
/// gradients, or in their dual form by a Cholesky decomposition if `Objective::prefers_dual()`.
///
/// Does not own the options; the caller keeps them alive. The caller may change the ridge, the limits and the
/// tolerances before each call of `start`; shape, likelihood and preconditioner are fixed by the constructor. Not
/// thread-safe.
class LevenbergMarquardt {
 public:
  LevenbergMarquardt(const std::shared_ptr<const NormalEquations>& equations, const NewtonOptions& options);
  /// For rows in memory. Does not own the rows and the thread pool; the caller keeps them alive.
  LevenbergMarquardt(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool)
      : LevenbergMarquardt(std::make_shared<InMemoryNormalEquations>(rows, options, pool), options) {}

  /// Sets the parameters and resets the damping.
  void start(SignedFactors<double> parameters);

  /// Computes a step, takes it if it decreases the objective, and updates the damping. Returns false if the fit has
  /// converged, diverged or been interrupted.
  bool step();

  /// Takes steps until `step` returns false, at most 60.
  void run();

  /// Refines parameters near a minimum: Levenberg-Marquardt steps, then Newton steps with the full Hessian. With a
  /// ridge on the factors, collapsed factors are set to 0 in between. Ends when the gradient is zero up to rounding,
  /// when no step improves the fit, or after `max_passes` passes over the rows.
  void polish(Index max_passes);

  [[nodiscard]] const SignedFactors<double>& parameters() const { return parameters_; }
  [[nodiscard]] double loss() const { return loss_; }            ///< weighted mean over the rows, without the ridge
  [[nodiscard]] double objective() const { return objective_; }  ///< weighted mean over the rows, with the ridge
  [[nodiscard]] bool is_exact() const;                           ///< the residuals are rounding errors
  [[nodiscard]] double total_weight() const { return data_objective_.total_weight(); }
  /// Mean loss of the best constant prediction.
  [[nodiscard]] double constant_loss() const { return data_objective_.constant_loss(); }
  [[nodiscard]] Index steps() const { return steps_; }                     ///< number of steps of all starts
  [[nodiscard]] Index passes() const { return data_objective_.passes(); }  ///< passes over all rows of all starts

 private:
  [[nodiscard]] bool is_interrupted() const { return options_.interrupted && options_.interrupted(); }
  /// to += scale * ridge * (weights, factors, squares).
  void add_ridge(double scale, const Vector<double>& weights, const RowMajorMatrix<double>& factors,
                 const Vector<double>& squares, ParameterVector& to) const;
  /// The term that the ridge adds to the objective.
  [[nodiscard]] double ridge_penalty(const SignedFactors<double>& parameters) const;
  /// J'r - ridge theta, at the parameters at which the data objective was evaluated last.
  [[nodiscard]] ParameterVector negative_gradient() const;
  /// Step t up to a relative residual of `tolerance`. Sets `predicted_decrease_`.
  ParameterVector solve(double tolerance);
  /// Step t from the dual equations, one per row. Sets `predicted_decrease_`.
  ParameterVector solve_dual();
  /// Sets the parameters, even if the objective increases, and returns J'r - ridge theta.
  ParameterVector negative_gradient_at(SignedFactors<double> parameters);
  /// Solution t of (H + damping * total_weight() I) t = gradient with the full Hessian H. `last_pass`: value of
  /// passes() at which the iteration ends.
  ParameterVector newton_step(const ParameterVector& gradient, double damping, Index last_pass);

  const NewtonOptions& options_;
  double epsilon_;  ///< relative rounding error of the rows
  Objective data_objective_;
  Preconditioner preconditioner_;
  SignedFactors<double> parameters_;
  double loss_ = 0;
  double objective_ = 0;
  double damping_ = 0;
  double predicted_decrease_ = 0;         ///< of the objective, by the quadratic model of the last step
  int stalled_steps_ = 0;                 ///< consecutive steps with little decrease of the objective
  bool is_data_objective_stale_ = false;  ///< `data_objective_` was evaluated at other parameters than `parameters_`
  Index steps_ = 0;
};

}  // namespace dyad
