#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/gauss_newton/newton_options.h"

namespace dyad {

struct NewtonFit {
  SignedFactors<double> parameters;
  double residual_squares = 0;  ///< weighted mean
  bool exact = false;           ///< the residuals are rounding errors
  bool finite = false;
  Index starts = 0;
  Index steps = 0;
  Index products = 0;  ///< passes over all rows
};

/// Least squares over (b, w, squares, A) by Levenberg-Marquardt. Starts from `known` if it is given, then from
/// `phase_start` or `moment_start`, which expect features of about mean 0 and variance 1.
NewtonFit gauss_newton(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                       const SignedFactors<double>* known = nullptr);

}  // namespace dyad
