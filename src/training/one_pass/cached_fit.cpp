#include "training/one_pass/cached_fit.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "solvers/irls/log_det_irls.h"

namespace dyad {
namespace {

/// Rows per unknown from which the first candidate of IRLS suffices: without noise, 10 of 10 fits succeed at 1.5 for
/// the condition numbers 1, 5 and 100 (docs/method.md).
constexpr double rows_per_unknown_of_one_candidate = 1.5;
/// Rows per unknown from which IRLS is not used. Buffered rows have been fitted at smaller sizes before.
constexpr double max_rows_per_unknown_of_irls = 3;
/// Limit of the candidates with fewer rows. At 1.1 rows per unknown and condition number 1000, 10 of 10 fits succeed
/// within it.
constexpr Index max_irls_candidates = 24;

/// Keeps the better fit and adds the counts of both.
void merge_fit(NewtonFit& best, NewtonFit fit) {
  if (fit.is_exact || fit.mean_squared_residual < best.mean_squared_residual) std::swap(best, fit);
  best.starts += fit.starts;
  best.steps += fit.steps;
  best.passes += fit.passes;
}

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
  if (best.is_exact) return best;
  LogDetIrls irls(rows, {options.shape, options.seed, options.interrupted});
  const Index candidates = rows_per_unknown < rows_per_unknown_of_one_candidate ? max_irls_candidates : 1;
  for (Index i = 0; i < candidates && !best.is_exact && !(options.interrupted && options.interrupted()); ++i) {
    const std::optional<SignedFactors<double>> start = irls.next_candidate();
    if (!start) break;
    merge_fit(best, fit_gauss_newton(rows, single, pool, &*start));
  }
  best.passes += irls.iterations();
  return best;
}

}  // namespace dyad
