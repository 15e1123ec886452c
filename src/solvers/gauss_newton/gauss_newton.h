#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

/// Folder solvers/gauss_newton: batch fits of (b, w, squares, A) with M = A diag(signs) A' by Levenberg-Marquardt.
/// `NormalEquations` computes sums over the rows, `Objective` the loss and its derivatives, `Preconditioner` an
/// approximate inverse for conjugate gradients, `LevenbergMarquardt` the steps. `compute_moment_start` and
/// `compute_phase_start` initialize `fit_gauss_newton`.

namespace dyad {

/// Result of `fit_gauss_newton`: of the fits from all starts, the one with the smallest residuals.
struct NewtonFit {
  SignedFactors<double> parameters;
  double mean_squared_residual = 0;  ///< weighted mean over the rows
  bool is_exact = false;             ///< the residuals are rounding errors
  bool is_finite = false;            ///< `mean_squared_residual` is finite
  Index starts = 0;                  ///< number of initial points
  Index steps = 0;                   ///< Levenberg-Marquardt steps of all starts
  Index passes = 0;                  ///< passes over all rows, without those of compute_moment_start
};

/// Least squares over (b, w, squares, A) by Levenberg-Marquardt from one or more starts, until a fit is exact.
///
/// The first start is `warm_start`, if it is not null. It is the only start unless `options.sign_restarts` is set. The
/// next one is `compute_phase_start` for phase retrieval with few enough features (`can_compute_phase_start`). For
/// other problems, the next one is `compute_moment_start` with as many positive factors as the moments have positive
/// eigenvalues. With `options.sign_restarts`, all other numbers of positive factors follow. The phase and moment starts
/// assume features of mean 0 and variance 1.
NewtonFit fit_gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                           const SignedFactors<double>* warm_start = nullptr);

}  // namespace dyad
