#include "theory_table.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "command.h"

namespace dyad::cli {
namespace {

/// Whether the noisy theorem applies rather than Theorem 1.
bool has_noise(const RecoverOptions& options) { return options.problem.noise > 0 || options.problem.residual > 0; }

double recovery_index(const RecoveryPoint& point) {
  return point.tan_theta + point.theory->index_weight * point.error();
}

/// Convergence bound of one batch: the predicted factor of Theorem 1, or index, rate and floor of the noisy theorem.
std::string convergence_text(const RecoverOptions& options, const RecoveryPoint& point) {
  if (!point.theory) return "initial estimate";
  const TheoryPoint& theory = *point.theory;
  if (!theory.is_applicable) return "assumptions not satisfied";
  const std::string vacuous = theory.is_vacuous() ? ", vacuous" : "";
  if (!has_noise(options)) return fmt::format("{:.2f}{}", theory.factor, vacuous);
  return fmt::format("{:.1e} <= {:.1e}  {:.2f}{}", recovery_index(point), theory.index_bound, theory.rate,
                     vacuous.empty() ? fmt::format("  {:.1e}", theory.index_floor) : vacuous);
}

void print_rate(const RecoverOptions& options, double max_rate) {
  if (max_rate == 0)
    print_message("No update satisfies the assumptions of the lemma, so the proof gives no bound.\n");
  else if (max_rate < 1 && has_noise(options))
    print_message(
        "The proof guarantees that each batch multiplies the distance of the index from its floor by at most {:.2f}.\n",
        max_rate);
  else if (max_rate < 1)
    print_message("The proof guarantees that each batch reduces the error by a factor of at least {:.2f}.\n",
                  1 / max_rate);
  else
    print_message(
        "A rate of at least 1 is vacuous: the bound does not imply convergence. The bound adds worst cases that do\n"
        "not occur together; compare the measured errors. delta decreases like 1/sqrt(n).\n");
}

}  // namespace

void print_theory_heading(const RecoverOptions& options) {
  print_heading("\n{:>10} {:>8} {:>8} {:>8}{} {:>19} {:>19} {:>19}  {}\n", "rows", "rows/kd", "CI-RIP", "delta",
                has_noise(options) ? fmt::format(" {:>8}", "r") : "", "tan theta <= bound", "|w-w*| <= bound",
                "|M-M*|_2 <= bound", has_noise(options) ? "index <= bound      q     floor" : "predicted factor");
}

void print_theory_line(const RecoverOptions& options, const RecoveryPoint& point) {
  const bool has_bounds = point.theory && point.theory->is_applicable;
  const auto pair = [&](double measured, double bound) {
    return has_bounds ? fmt::format("{:.1e} <= {:.1e}", measured, bound) : fmt::format("{:.1e}           ", measured);
  };
  const TheoryPoint theory = point.theory.value_or(TheoryPoint());
  const auto constant = [&](double value) { return point.theory ? fmt::format("{:.1e}", value) : ""; };
  print_message("{:>10} {:>8.1f} {:>8} {:>8}{} {:>19} {:>19} {:>19}  {}\n", point.rows,
                static_cast<double>(point.rows) / static_cast<double>(options.problem.kd()), constant(theory.ci_rip),
                constant(theory.delta), has_noise(options) ? fmt::format(" {:>8}", constant(theory.noise)) : "",
                pair(point.tan_theta, theory.alpha_bound), pair(point.error_w, theory.beta_bound),
                pair(point.error_M, theory.gamma_bound), convergence_text(options, point));
}

void print_theory_summary(const RecoverOptions& options, const RecoverySummary& summary) {
  double max_rate = 0;
  for (const RecoveryPoint& point : summary.trace)
    if (point.theory && point.theory->is_applicable)
      max_rate = std::max(max_rate, has_noise(options) ? point.theory->rate : point.theory->factor);
  print_message(
      "\nCI-RIP: measured constant of the shifted conditionally independent restricted isometry property on the batch\n"
      "delta: smallest constant for which the CI-RIP theorem and the estimation sequence lemma hold\n"
      "bounds: from delta by the recursion lemma\n");
  if (has_noise(options))
    print_message(
        "r: norm of the change estimated from the noise alone; M* is replaced by its best rank-k approximation\n"
        "index: tan theta + 2 c delta (|w-w*| + |M-M*|_2), bounded by q times the index before plus (1 - q) floor\n");
  print_rate(options, max_rate);
}

nlohmann::ordered_json theory_json(const RecoverOptions& options, const TheoryPoint& theory) {
  nlohmann::ordered_json fields = {{"ci_rip", theory.ci_rip},           {"delta", theory.delta},
                                   {"alpha_bound", theory.alpha_bound}, {"beta_bound", theory.beta_bound},
                                   {"gamma_bound", theory.gamma_bound}, {"factor", theory.factor},
                                   {"applies", theory.is_applicable},   {"vacuous", theory.is_vacuous()}};
  if (has_noise(options)) {
    fields["noise"] = theory.noise;
    fields["index_weight"] = theory.index_weight;
    fields["index_bound"] = theory.index_bound;
    fields["rate"] = theory.rate;
    fields["index_floor"] = theory.index_floor;
  }
  return fields;
}

}  // namespace dyad::cli
