#pragma once

#include "solvers/gauss_newton/gauss_newton.h"

namespace dyad {

/// Search for a start of Gauss-Newton.
enum class StartSearch {
  none,      ///< one start: the warm start, or the moments of the rows
  brief,     ///< the solvers of measurements without restarts, for a stream that can wait for more rows
  thorough,  ///< with restarts until the fit is exact, within a limit of the work
};

/// Result of `fit_cached_rows`.
struct CachedFit {
  SignedFactors<double> parameters;
  double mean_squared_residual = 0;  ///< weighted mean over the rows, without outliers
  double noise_variance = 0;         ///< squared residuals per degree of freedom; 0 for exact fits
  bool is_exact = false;             ///< the residuals are rounding errors
  bool is_finite = false;            ///< `mean_squared_residual` is finite
  Vector<double> weights;            ///< weights of the rows, times those of the robust fit, if there are outliers
  Index starts = 0;                  ///< number of starts of Gauss-Newton
  Index passes = 0;                  ///< passes over all rows
};

/// Least squares over (b, w, squares, A). With a search, Gauss-Newton refines the candidates of the solvers of
/// measurements until a fit is exact:
///
/// - the warm start, if it is not null;
/// - relaxed reflections (`Reflections`) for symmetric measurements whose targets have one sign;
/// - matrix-free log-det IRLS (`MatrixFreeIrls`);
/// - thorough searches with few rows per unknown: restarts of dense log-det IRLS (`LogDetIrls`), and more reflections.
///
/// A thorough search also leaves local minima that lack a direction of M (`find_residual_structure`). If the residuals
/// of the best fit have heavy tails, a robust fit (`fit_robustly`) replaces it if it separates outliers from the other
/// rows.
CachedFit fit_cached_rows(const ObservedRows& rows, const NewtonOptions& options, StartSearch search, ThreadPool& pool,
                          const SignedFactors<double>* warm_start = nullptr);

}  // namespace dyad
