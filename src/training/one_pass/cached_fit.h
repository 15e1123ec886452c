#pragma once

#include "solvers/gauss_newton/gauss_newton.h"

namespace dyad {

/// Least squares over cached rows. Gauss-Newton starts from `warm_start`, or else from the moments of the rows. If this
/// fit is not exact and `options.sign_restarts` is set, Gauss-Newton refines the candidates of log-det IRLS
/// (`LogDetIrls`) until a fit is exact. With many rows per unknown, and for models that IRLS does not support, it
/// restarts with other numbers of positive factors instead (`fit_gauss_newton`).
NewtonFit fit_cached_rows(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                          const SignedFactors<double>* warm_start = nullptr);

}  // namespace dyad
