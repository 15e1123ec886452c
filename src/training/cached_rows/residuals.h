#pragma once

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"

namespace dyad {

// The folder training/cached_rows fits rows that can be read repeatedly: it selects and combines the solvers of
// measurements, and diagnoses their result.

/// Residuals y - f(x) of all rows.
Vector<double> compute_residuals(const ObservedRows& rows, const SignedFactors<double>& parameters, ThreadPool& pool);

/// Robust standard deviation of residuals: 1.4826 times the median of |r| over the rows of positive weight, which is
/// consistent for the normal distribution, times sqrt(n / (n - unknowns)) for the degrees of freedom.
double compute_robust_scale(const Vector<double>& residuals, const Vector<double>& weights, Index unknowns);

/// Residuals below this size are rounding errors: that of exact fits, relative to the root mean square of the targets.
double min_residual_scale(const ObservedRows& rows);

/// Largest mean squared residual of an exact fit, relative to the variance of the targets, for rows with the relative
/// rounding error `epsilon`.
double exact_residual_share(double epsilon);

}  // namespace dyad
