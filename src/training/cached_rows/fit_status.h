#pragma once

#include <string>

#include <dyad/types.h>

#include "solvers/gauss_newton/newton_options.h"
#include "training/cached_rows/residuals.h"

namespace dyad {

/// Result of `diagnose_fit`.
struct FitDiagnosis {
  FitStatus status = FitStatus::converged;
  double noise = 0;    ///< standard deviation of the residuals per degree of freedom; 0 for exact fits
  Index outliers = 0;  ///< rows that the fit excludes
  /// Standard errors by the Laplace approximation. Empty if they are not available: the fit is not identifiable, or has
  /// too many unknowns.
  Matrix<double> matrix_errors;  ///< of the entries of M
  Vector<double> weight_errors;  ///< of w; empty for models without linear terms
  Vector<double> factor_errors;  ///< of the factor of a symmetric model of rank 1
};

/// Determines whether a least-squares fit is reliable and, if not, why, by tests in this order: the number of rows; the
/// signs of the targets of a positive model; the rank of the Jacobian; outliers; the moments of the residuals; and the
/// leave-one-out residuals, compared with the variance of the targets. Requires a Gaussian likelihood.
FitDiagnosis diagnose_fit(const ObservedRows& rows, const NewtonOptions& options,
                          const SignedFactors<double>& parameters, ThreadPool& pool);

/// The status in words, with what to change. `outliers`: number of excluded rows.
std::string status_text(FitStatus status, Index outliers);

}  // namespace dyad
