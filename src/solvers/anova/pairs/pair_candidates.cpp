#include "solvers/anova/pairs/pair_candidates.h"

#include <optional>

namespace dyad {

Candidate evaluate_candidate(AxisCache& axes, std::pair<Index, Index> columns, std::pair<Index, Index> knots,
                             const ScreenRows& rows) {
  Candidate candidate;
  candidate.term =
      std::make_unique<Term>(axes.get(columns.first, knots.first), axes.get(columns.second, knots.second), knots);
  candidate.gain = compute_gain(*candidate.term, rows);
  candidate.added_knots = candidate.term->size();
  candidate.gain_per_knot = candidate.gain.nats / static_cast<double>(candidate.added_knots);
  return candidate;
}

std::vector<std::pair<Index, Index>> finer_grids(const Term& term) {
  const auto [a, b] = term.knots;
  return {{2 * a, b}, {a, 2 * b}, {2 * a, 2 * b}};
}

Candidate find_finer_grid(const Term& term, AxisCache& axes, const ScreenRows& rows, const PairKnotLimits& limits) {
  Candidate best;
  std::optional<double> present;
  for (const auto& knots : finer_grids(term)) {
    const FittedAxis& first = axes.get(term.columns().first, knots.first);
    const FittedAxis& second = axes.get(term.columns().second, knots.second);
    const Index size = first.axis.size() * second.axis.size();
    if (size <= term.size() || size > limits.per_pair || size - term.size() > limits.added) continue;
    if (!present) present = evaluate_candidate(axes, term.columns(), term.knots, rows).gain.nats;
    Candidate candidate = evaluate_candidate(axes, term.columns(), knots, rows);
    candidate.gain.nats -= *present;
    candidate.added_knots -= term.size();
    candidate.gain_per_knot = candidate.gain.nats / static_cast<double>(candidate.added_knots);
    if (candidate.gain.nats > limits.min_gain && candidate.gain_per_knot > best.gain_per_knot)
      best = std::move(candidate);
  }
  return best;
}

}  // namespace dyad
