#include "solvers/anova/main_effects.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

namespace dyad {
namespace {

/// Iterations of REML, and steps of iteratively reweighted least squares.
constexpr EstimationEffort main_effort{.iterations = 12, .class_steps = 5};
/// Each variance adds at most about 1 / (2 n) nats of loss per row by fitting noise. Priors are compared if the
/// variances of all columns and kernels can cost 1%, which is n < 50 variances.
constexpr double compared_rows_per_variance = 50;

enum class MainPrior {
  lines,   ///< weights of all columns share one variance; no curves
  shared,  ///< one variance per kernel
  free,    ///< one variance per kernel and column
};

std::vector<std::unique_ptr<Term>> make_terms(TermFit& fit, MainPrior prior) {
  std::vector<std::unique_ptr<Term>> terms;
  for (const Index column : fit.columns()) {
    auto term = std::make_unique<Term>(fit.axes().get_main(column));
    if (prior == MainPrior::lines)
      term->set_straight_kernels(false);
    else if (fit.options().has_curves)
      term->set_kernels(term->default_kernels());
    else
      term->set_straight_kernels(true);
    for (TermKernel& kernel : term->kernels) {
      kernel.theta = fit.response().prior_variance() / static_cast<double>(fit.columns().size() * term->kernels.size());
      if (prior != MainPrior::free) kernel.tie = static_cast<Index>(kernel.kernel.first);
      kernel.penalty = kernel.tie >= 0 ? 0 : fit.penalty();
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

/// Replaces all terms.
void fit_terms(TermFit& fit, std::vector<std::unique_ptr<Term>> terms) {
  std::set<Index> replaced;
  for (Index t = 0; t < std::ssize(fit.terms()); ++t) replaced.insert(t);
  fit.replace_terms(replaced, std::move(terms), main_effort);
}

}  // namespace

void fit_main_effects(TermFit& fit) {
  std::vector<std::unique_ptr<Term>> terms = make_terms(fit, MainPrior::free);
  std::size_t variances = 0;
  for (const auto& term : terms) variances += term->kernels.size();
  const bool compares = fit.columns().size() > 1 && fit.response().total_repetitions() <
                                                        compared_rows_per_variance * static_cast<double>(variances);
  if (!compares) return fit_terms(fit, std::move(terms));
  // Without curves, all variances are shared.
  std::vector<MainPrior> priors{MainPrior::lines, MainPrior::free};
  if (fit.options().has_curves) priors.insert(priors.begin() + 1, MainPrior::shared);
  MainPrior best = priors.front();
  double best_score = 0;
  TermFit::State best_state;
  for (const MainPrior prior : priors) {
    fit_terms(fit, make_terms(fit, prior));
    if (prior == priors.front() || fit.score() > best_score) {
      best = prior;
      best_score = fit.score();
      best_state = fit.state();
    }
    if (fit.was_interrupted()) return;
  }
  if (best == MainPrior::free) return;
  std::vector<std::unique_ptr<Term>> selected = make_terms(fit, best);
  for (std::size_t t = 0; t < selected.size(); ++t)
    for (std::size_t c = 0; c < selected[t]->kernels.size(); ++c)
      selected[t]->kernels[c].theta = best_state.thetas[t][c];
  fit_terms(fit, std::move(selected));
}

}  // namespace dyad
