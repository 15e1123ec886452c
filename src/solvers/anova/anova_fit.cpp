#include "solvers/anova/anova_fit.h"

#include "solvers/anova/main_effects.h"
#include "solvers/anova/noise/noise_fit.h"
#include "solvers/anova/pairs/pair_selection.h"
#include "solvers/anova/term_fit.h"

namespace dyad {
namespace {

/// Last steps for censored targets, which keep the Gram matrix.
void finish_response(TermFit& fit) {
  if (!fit.response().is_censored()) return;
  constexpr Index censored_steps = 12;
  constexpr Index last_iterations = 4;
  for (Index step = 0; step < censored_steps && !fit.was_interrupted(); ++step) {
    fit.update_response();
    fit.estimate(step + 1 < censored_steps ? 1 : last_iterations);
  }
}

}  // namespace

AnovaFit fit_anova(const ColumnTable& table, std::span<const double> targets, std::span<const double> weights,
                   const AnovaOptions& options, ThreadPool& pool) {
  TermFit fit(table, targets, weights, options, pool);
  fit_main_effects(fit);
  fit.report("columns");
  PairSelection pairs(fit);
  if (options.has_curves)
    while (pairs.add_round()) continue;
  if (!fit.was_interrupted()) pairs.add_shared_pairs();
  if (!fit.was_interrupted()) finish_response(fit);
  AnovaFit result = fit.make_result();
  if (!options.is_classification && !result.was_interrupted) fit_noise(fit, result);
  result.rounds = pairs.rounds();
  result.pairs = pairs.pairs();
  return result;
}

}  // namespace dyad
