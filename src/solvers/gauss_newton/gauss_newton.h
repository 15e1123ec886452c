#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

/// Folder solvers/gauss_newton: batch fits of (b, w, squares, A) with M = A diag(signs) A' by Levenberg-Marquardt.
/// `NormalEquations` computes sums over the rows, `Objective` the loss and its derivatives, `Preconditioner` an
/// approximate inverse for conjugate gradients, `LevenbergMarquardt` the steps, and `compute_moment_start` a start.

namespace dyad {

/// Result of `fit_gauss_newton`.
struct NewtonFit {
  SignedFactors<double> parameters;
  double mean_squared_residual = 0;  ///< weighted mean over the rows
  bool is_exact = false;             ///< the residuals are rounding errors
  bool is_finite = false;            ///< `mean_squared_residual` is finite
  Index steps = 0;                   ///< Levenberg-Marquardt steps
  Index passes = 0;                  ///< passes over all rows, without those of compute_moment_start
};

class LevenbergMarquardt;

/// Runs the solver from `start`. The counts of the result are those of all runs of the solver.
NewtonFit fit_gauss_newton(LevenbergMarquardt& solver, SignedFactors<double> start);

/// Least squares over (b, w, squares, A) by Levenberg-Marquardt from `start`. If it is null, from
/// `compute_moment_start`, which assumes features of mean 0 and variance 1. The signs of the factors are those of the
/// start.
NewtonFit fit_gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                           const SignedFactors<double>* start = nullptr);

}  // namespace dyad
