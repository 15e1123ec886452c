#include "recovery/outcome_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace dyad {
namespace {

// Measured (docs/method.md): an update multiplies the error by about sqrt((k + 2.5) d / n), and noise of standard
// deviation s leaves an error of about 1.8 s sqrt(d / n).
constexpr double floor_constant = 1.8;

/// Below it, one update hardly shrinks the error, or makes it grow.
Index smallest_batch(const PlantedOptions& problem) { return (problem.rank + 3) * problem.total_dim(); }

std::string too_small(const RecoverOptions& options) {
  const PlantedOptions& problem = options.problem;
  return fmt::format(
      "a batch of {} rows is too small for d = {}, k = {}: it takes at least (k + 3) d = {}, better 6kd = {}",
      options.batch_rows(), problem.total_dim(), problem.rank, smallest_batch(problem), 6 * problem.kd());
}

double noise_floor(const RecoverOptions& options) {
  const auto d = static_cast<double>(options.problem.total_dim());
  // The variance of x'Rx is 2 |R|_F^2, that of x'Rz is |R|_F^2.
  const PlantedOptions& problem = options.problem;
  const auto residual_squares =
      static_cast<double>(problem.is_bilinear() ? std::min(problem.dim, problem.right_dim) : 2 * problem.dim);
  const double variance = problem.noise * problem.noise + residual_squares * problem.residual * problem.residual;
  return floor_constant * std::sqrt(variance * d / static_cast<double>(options.batch_rows()));
}

/// The highest rank whose unknowns are no more than the rows.
Index highest_rank(RecoverOptions options, Index rows) {
  while (options.problem.rank > 0 && options.unknowns() > rows) --options.problem.rank;
  return options.problem.rank;
}

/// The factor by which the error fell per batch, over the last quarter of the run.
double recent_contraction(const std::vector<RecoveryPoint>& trace) {
  const std::size_t span = std::max<std::size_t>(1, trace.size() / 4);
  const double before = trace[trace.size() - 1 - span].error();
  return std::pow(before / trace.back().error(), 1 / static_cast<double>(span));
}

std::string reason_for_stopping_short(const RecoverOptions& options, const RecoverySummary& summary) {
  const double error = summary.trace.back().error();
  if (options.unknowns() > summary.rows) {
    const Index possible = highest_rank(options, summary.rows);
    const std::string facts = fmt::format("rank {} has {} unknowns, more than the {} rows used", options.problem.rank,
                                          options.unknowns(), summary.rows);
    return possible > 0 ? fmt::format("rank too high: {}; they could determine rank {} at the most", facts, possible)
                        : "too few rows: " + facts;
  }
  if (options.chosen_solver() != Solver::moment) {
    if (options.problem.noise > 0 || options.problem.residual > 0)
      return "with noise the error falls like 1/sqrt(rows): 4 times the rows halve it";
    return options.chosen_solver() == Solver::newton ? "no start led to a fit of the cached rows; more rows may"
                                                     : "out of rows while learning; more may do";
  }
  if (options.batch_rows() < smallest_batch(options.problem)) return too_small(options);
  const double expected = noise_floor(options);
  if (expected > 0 && error < 3 * expected && summary.trace.size() > 2)
    return fmt::format(
        "noise floor reached, about 1.8 s sqrt(d/n) = {:.2g} for batches of {} rows; batches 4 times as "
        "large halve it",
        expected, options.batch_rows());
  if (summary.trace.size() < 2) return "the rows were enough for one batch only";
  const double factor = recent_contraction(summary.trace);
  if (factor > 1.02) {
    const double batches = std::ceil(std::log(error / options.tolerance) / std::log(factor));
    return fmt::format("out of rows while converging, {:.2f} times a batch; about {:.0f} more would do", factor,
                       batches * static_cast<double>(options.batch_rows()));
  }
  return fmt::format("the error no longer falls; try batches of more than {} rows", options.batch_rows());
}

}  // namespace

std::string RecoverOptions::warning() const {
  return chosen_solver() == Solver::moment && batch_rows() < smallest_batch(problem) ? too_small(*this) : "";
}

std::string outcome_text(const RecoverOptions& options, const RecoverySummary& summary) {
  if (summary.trace.empty()) return "interrupted before the first batch was complete";
  const auto kd = static_cast<double>(options.problem.kd());
  const std::string where =
      fmt::format("error {:.2g} after {} rows ({:.4g} kd) in {:.2f} s, {}", summary.trace.back().error(), summary.rows,
                  static_cast<double>(summary.rows) / kd, summary.seconds, summary.origin);
  switch (summary.outcome) {
    case Outcome::converged:
      return "converged: " + where;
    case Outcome::interrupted:
      return "interrupted: " + where;
    case Outcome::diverged:
      return fmt::format("diverged: {}; {}", where,
                         options.warning().empty() ? "more rows may help" : options.warning());
    case Outcome::budget:
      break;
  }
  return fmt::format("not converged: {}; {}", where, reason_for_stopping_short(options, summary));
}

}  // namespace dyad
