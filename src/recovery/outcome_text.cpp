#include "recovery/outcome_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "training/cached_rows/fit_status.h"

namespace dyad {
namespace {

/// Noise of standard deviation s leaves an error of about 1.8 s sqrt(d / n) with batches of n rows (measured,
/// docs/paper.md).
constexpr double noise_floor_factor = 1.8;
/// An error below this multiple of the expected noise floor is reported as the noise floor. Sensitivity:
/// docs/constants.md.
constexpr double max_floor_ratio = 3;
/// Smallest ratio of the errors before and after a batch that is reported as convergence. Sensitivity:
/// docs/constants.md.
constexpr double min_contraction = 1.02;

/// An update multiplies the error by about sqrt((k + 2.5) d / n) (measured, docs/paper.md). With fewer than (k + 3) d
/// rows the factor is close to 1 or above.
Index min_batch_rows(const PlantedOptions& problem) { return (problem.rank + 3) * problem.total_dim(); }

std::string small_batch_text(const RecoverOptions& options) {
  const PlantedOptions& problem = options.problem;
  return fmt::format(
      "a batch of {} rows is too small for d = {}, k = {}: use at least (k + 3) d = {} rows, or the default of 6kd = "
      "{}",
      options.batch_rows(), problem.total_dim(), problem.rank, min_batch_rows(problem),
      default_batch_rows_per_kd * problem.kd());
}

/// Error below which a run with noise or a residual spectrum R does not converge, as expected from the batch size.
double noise_floor(const RecoverOptions& options) {
  const auto d = static_cast<double>(options.problem.total_dim());
  // R acts like noise: Var(x'Rx) = 2 |R|_F^2 and Var(x'Rz) = |R|_F^2 for standard normal x and z.
  const PlantedOptions& problem = options.problem;
  const auto residual_variance_factor =
      static_cast<double>(problem.is_bilinear() ? std::min(problem.dim, problem.right_dim) : 2 * problem.dim);
  const double variance =
      problem.noise * problem.noise + residual_variance_factor * problem.residual * problem.residual;
  return noise_floor_factor * std::sqrt(variance * d / static_cast<double>(options.batch_rows()));
}

/// Largest rank with at most as many unknowns as rows.
Index max_determined_rank(RecoverOptions options, Index rows) {
  while (options.problem.rank > 0 && options.unknowns() > rows) --options.problem.rank;
  return options.problem.rank;
}

/// Geometric mean of error_{t-1} / error_t over the last quarter of the batches.
double recent_contraction(const std::vector<RecoveryPoint>& trace) {
  const std::size_t batch_count = std::max<std::size_t>(1, trace.size() / 4);
  const double before = trace[trace.size() - 1 - batch_count].error();
  return std::pow(before / trace.back().error(), 1 / static_cast<double>(batch_count));
}

/// The likely reason why a run used all of its rows without reaching the tolerance.
std::string budget_reason(const RecoverOptions& options, const RecoverySummary& summary) {
  const double error = summary.trace.back().error();
  if (options.unknowns() > summary.rows) {
    const Index possible = max_determined_rank(options, summary.rows);
    const std::string facts = fmt::format("rank {} has {} unknowns, more than the {} rows used", options.problem.rank,
                                          options.unknowns(), summary.rows);
    return possible > 0 ? fmt::format("rank too high: {}; these rows determine at most rank {}", facts, possible)
                        : "too few rows: " + facts;
  }
  if (options.resolved_solver() != Solver::moment) {
    if (summary.status != FitStatus::converged) return status_text(summary.status, summary.outliers);
    if (options.problem.noise > 0 || options.problem.residual > 0)
      return "with noise the error decreases like 1/sqrt(rows): 4 times the rows halve it";
    return "out of rows before convergence; use more rows";
  }
  if (options.batch_rows() < min_batch_rows(options.problem)) return small_batch_text(options);
  const double expected = noise_floor(options);
  if (expected > 0 && error < max_floor_ratio * expected && summary.trace.size() > 2)
    return fmt::format(
        "noise floor reached, about 1.8 sqrt(v d/n) = {:.2g} for noise of variance v and batches of n = {} rows; "
        "batches 4 times as large halve it",
        expected, options.batch_rows());
  if (summary.trace.size() < 2) return "the rows were sufficient for one batch only; use more rows";
  const double factor = recent_contraction(summary.trace);
  if (factor > min_contraction) {
    const double batches = std::ceil(std::log(error / options.tolerance) / std::log(factor));
    return fmt::format("out of rows while converging by a factor of {:.2f} per batch; use about {:.0f} more rows",
                       factor, batches * static_cast<double>(options.batch_rows()));
  }
  return fmt::format("the error no longer decreases; use batches of more than {} rows", options.batch_rows());
}

}  // namespace

std::string RecoverOptions::warning() const {
  return resolved_solver() == Solver::moment && batch_rows() < min_batch_rows(problem) ? small_batch_text(*this) : "";
}

std::string outcome_text(const RecoverOptions& options, const RecoverySummary& summary) {
  if (summary.trace.empty()) return "interrupted before the first batch was complete";
  const auto kd = static_cast<double>(options.problem.kd());
  const std::string result =
      fmt::format("error {:.2g} after {} rows ({:.4g} kd) in {:.2f} s, by {}", summary.trace.back().error(),
                  summary.rows, static_cast<double>(summary.rows) / kd, summary.seconds, summary.origin);
  switch (summary.outcome) {
    case Outcome::converged:
      return "converged: " + result;
    case Outcome::interrupted:
      return "interrupted: " + result;
    case Outcome::diverged:
      return fmt::format("diverged: {}; {}", result, options.warning().empty() ? "use more rows" : options.warning());
    case Outcome::budget:
      break;
  }
  return fmt::format("not converged: {}; {}", result, budget_reason(options, summary));
}

}  // namespace dyad
