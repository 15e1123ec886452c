#include "training/one_pass/cached_fit.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "solvers/irls/log_det_irls.h"

namespace dyad {
namespace {

/// Rows per unknown from which the first candidate of IRLS suffices: without noise, 6 of 6 fits succeed at 1.5 for
/// condition numbers 1 and 100.
constexpr double rows_per_unknown_of_one_candidate = 1.5;
/// Rows per unknown from which IRLS is not used. Buffered rows are fitted at smaller sizes before, and with noise
/// Gauss-Newton finds the same minimum from the moments at less cost.
constexpr double max_rows_per_unknown_of_irls = 3;
/// Limit of the candidates with fewer rows. At 1.1 rows per unknown and condition number 100, 6 of 6 fits succeed
/// within it.
constexpr Index max_irls_candidates = 24;

}  // namespace

NewtonFit fit_cached_rows(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool,
                          const SignedFactors<double>* warm_start) {
  const double rows_per_unknown =
      static_cast<double>(rows.count()) / std::max(1.0, static_cast<double>(options.shape.unknowns()));
  if (!options.sign_restarts || options.shape.is_phase_retrieval() || !LogDetIrls::can_solve(rows, options.shape) ||
      rows_per_unknown >= max_rows_per_unknown_of_irls)
    return fit_gauss_newton(rows, options, pool, warm_start);
  NewtonOptions single = options;
  single.sign_restarts = false;
  NewtonFit best = fit_gauss_newton(rows, single, pool, warm_start);
  LogDetIrls irls(rows, {options.shape, options.seed, options.interrupted});
  // A warm start is the fit of fewer rows, for which IRLS has found no exact fit: the rows have noise.
  const Index candidates = rows_per_unknown < rows_per_unknown_of_one_candidate ? max_irls_candidates
                           : warm_start == nullptr                              ? 1
                                                                                : 0;
  for (Index i = 0; i < candidates && !best.is_exact && !(options.interrupted && options.interrupted()); ++i) {
    const SignedFactors<double> start = irls.next_candidate();
    NewtonFit fit = fit_gauss_newton(rows, single, pool, &start);
    fit.starts += best.starts;
    fit.steps += best.steps;
    fit.passes += best.passes;
    if (fit.is_exact || fit.mean_squared_residual < best.mean_squared_residual)
      best = std::move(fit);
    else
      std::tie(best.starts, best.steps, best.passes) = std::tuple(fit.starts, fit.steps, fit.passes);
  }
  best.passes += irls.iterations();
  return best;
}

}  // namespace dyad
