#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include <dyad/shape.h>
#include <dyad/types.h>

#include "likelihood/likelihood.h"

namespace dyad {

/// L2 regularization, as prior precisions of the parameters for features of scale 1. The objective is the sum of the
/// losses of all rows (half squared residuals or log-losses) plus
/// weights (|w|^2 + |squares|^2) / 2 + factors |A|^2 / 2. The intercept is not regularized.
struct Ridge {
  double weights = 0;  ///< precision of weights and squares
  double factors = 0;  ///< precision of the entries of A
};

/// Options of `LevenbergMarquardt` and `fit_gauss_newton`.
struct NewtonOptions {
  ModelShape shape;
  LikelihoodPointer likelihood = make_likelihood(Task::regression);
  Ridge ridge;
  bool has_moment_preconditioner = true;  ///< false: precondition with the diagonal of the second moments only
  /// Solves the linear equations of each step to rounding. False: inexact Newton steps, whose tolerance decreases with
  /// the loss.
  bool exact_steps = false;
  /// Number of consecutive steps with little decrease of the objective after which a fit has converged.
  int patience = 3;
  Index max_passes = std::numeric_limits<Index>::max();  ///< maximum number of passes over all rows
  std::uint64_t seed = 1;                                ///< of the random vectors of the starts
  /// Called repeatedly during a fit by the thread that runs it. True ends the fit. Empty: no interruption.
  std::function<bool()> interrupted;
};

}  // namespace dyad
