#include <dyad/recover.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "command.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

const Choices<Kind> kinds{{"gfm", Kind::gfm}, {"sensing", Kind::sensing}, {"phase", Kind::phase}};
const Choices<Solver> solvers{{"moment", Solver::moment}, {"auto", Solver::moment}};
const Choices<Update> updates{{"one-scan", Update::one_scan}, {"paper", Update::paper}};
const Choices<Signs> all_signs{{"mixed", Signs::mixed}, {"positive", Signs::positive}};
const Choices<Outcome> outcomes{{"converged", Outcome::converged},
                                {"budget", Outcome::budget},
                                {"diverged", Outcome::diverged},
                                {"interrupted", Outcome::interrupted}};

struct Recover {
  RecoverOptions options;
  Output output;
  CLI::Option* rank = nullptr;
  CLI::Option* tolerance = nullptr;

  void add_to(CLI::App& verb);
  int run();

 private:
  void print_banner() const;
  void print_line(const RecoveryPoint& point);
  [[nodiscard]] nlohmann::ordered_json json(const RecoverySummary& summary) const;

  double error_before_ = NAN;
  Index rows_before_ = 0;
  double seconds_before_ = 0;
};

void Recover::add_to(CLI::App& verb) {
  PlantedOptions& problem = options.problem;
  add_choice(verb, "KIND", problem.kind, kinds, "What to plant")->required();
  add_number(verb, "--dim", problem.dim, "D", "Number of features d")->required();
  rank = add_number(verb, "--rank", problem.rank, "K", "Rank k of M, planted and learned; default 8 (phase: 1)");
  add_number(verb, "--rows", options.rows, "N", "Distinct rows that may be used; default 1000kd");
  tolerance =
      add_number(verb, "--tolerance", options.tolerance, "E",
                 "Stop when |w - w*| + |M - M*|_2 is down to this, default 1e-6; exit 1 if given and not reached");
  add_number(verb, "--batch", options.batch, "N", "Rows in one update; default 6kd");
  add_number(verb, "--noise", problem.noise, "S", "Standard deviation of the noise in y; default 0");
  add_number(verb, "--residual", problem.residual, "S", "Size of the eigenvalues of M* beyond rank k; default 0");
  add_number(verb, "--condition", problem.condition, "C",
             "Eigenvalues of M* are evenly spaced from 1 down to 1/C in size; default 1");
  add_choice(verb, "--signs", problem.signs, all_signs,
             "Signs of the eigenvalues; positive is told to the learner; default mixed");
  add_number(verb, "--intercept", problem.intercept, "B", "Plant this intercept and learn it");
  add_choice(verb, "--solver", options.solver, solvers, "Who learns; auto is moment");
  add_choice(verb, "--update", options.update, updates, "The moment solver's update; default one-scan");
  add_number(verb, "--threads", options.threads, "T", "Default: all cores");
  add_number(verb, "--seed", problem.seed, "S", "The same seed and threads give the same numbers; default 1");
  output.add_to(verb);
}

void Recover::print_banner() const {
  const PlantedOptions& problem = options.problem;
  const auto kd = static_cast<double>(problem.rank * problem.dim);
  std::string extras;
  if (problem.intercept) extras += fmt::format(", intercept {:g}", *problem.intercept);
  if (problem.noise > 0) extras += fmt::format(", noise {:g}", problem.noise);
  if (problem.residual > 0) extras += fmt::format(", residual {:g}", problem.residual);
  fmt::print(stderr, "planted   {}: d = {}, k = {}, {} signs, condition {:g}{}, seed {}\n",
             word_for(kinds, problem.kind), problem.dim, problem.rank, word_for(all_signs, problem.signs),
             problem.condition, extras, problem.seed);
  fmt::print(stderr, "learning  {} solver, {} update, {} unknowns, batches of {} rows ({:.3g} kd), {} threads\n",
             word_for(solvers, options.solver), word_for(updates, options.update), options.unknowns(),
             options.batch_rows(), static_cast<double>(options.batch_rows()) / kd,
             options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency()));
  if (const std::string warning = options.warning(); !warning.empty()) fmt::print(stderr, "warning   {}\n", warning);
  fmt::print(stderr, "\n{:>10} {:>8} {:>9} {:>9} {:>9} {:>7} {:>8}  error, 1 down to 1e-9\n", "rows", "rows/kd",
             "|w-w*|", "|M-M*|_2", "tan angle", "factor", "rows/s");
}

std::string short_count(double count) {
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e3) return fmt::format("{:.0f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

/// A bar whose length is the logarithm of the error: linear convergence is a straight slope.
std::string bar(double error) {
  constexpr double columns_per_decade = 3;
  const double decades = std::clamp(std::log10(error) + 9, 0.0, 9.5);
  return std::isfinite(error) ? std::string(static_cast<std::size_t>(decades * columns_per_decade), '#') : "";
}

void Recover::print_line(const RecoveryPoint& point) {
  const auto kd = static_cast<double>(options.problem.rank * options.problem.dim);
  const double error = point.error();
  fmt::print(stderr, "{:>10} {:>8.1f} {:>9.2e} {:>9.2e} {:>9.2e} {:>7} {:>8}  {}\n", point.rows,
             static_cast<double>(point.rows) / kd, point.error_w, point.error_M, point.tan_theta,
             std::isnan(error_before_) ? "" : fmt::format("{:.2f}", error_before_ / error),
             short_count(static_cast<double>(point.rows - rows_before_) / (point.seconds - seconds_before_)),
             bar(error));
  error_before_ = error;
  rows_before_ = point.rows;
  seconds_before_ = point.seconds;
}

nlohmann::ordered_json Recover::json(const RecoverySummary& summary) const {
  const auto describe = [&](const RecoveryPoint& point) {
    nlohmann::ordered_json fields;
    fields["rows"] = point.rows;
    fields["error_w"] = point.error_w;
    fields["error_M"] = point.error_M;
    if (options.problem.kind == Kind::phase) fields["error_a"] = point.error_a;
    if (options.problem.intercept) fields["error_b"] = point.error_b;
    fields["tan_theta"] = point.tan_theta;
    return fields;
  };
  nlohmann::ordered_json fields;
  if (!summary.trace.empty()) fields = describe(summary.trace.back());
  fields["rows"] = summary.rows;
  fields["row_reads"] = summary.row_reads;
  fields["seconds"] = summary.seconds;
  fields["rows_per_second"] = summary.rows_per_second();
  fields["peak_rss_bytes"] = summary.peak_rss_bytes;
  fields["outcome"] = word_for(outcomes, summary.outcome);
  fields["verdict"] = summary.verdict;
  fields["noise"] = summary.noise;
  fields["trace"] = nlohmann::ordered_json::array();
  for (const RecoveryPoint& point : summary.trace) fields["trace"].push_back(describe(point));
  return fields;
}

int Recover::run() {
  if (options.problem.kind == Kind::phase && rank->count() == 0) options.problem.rank = 1;
  options.validate();
  RecoveryHooks hooks;
  hooks.interrupted = interrupted_by_user;
  if (!output.quiet) {
    print_banner();
    hooks.progress = [this](const RecoveryPoint& point) { print_line(point); };
  }
  const RecoverySummary summary = recover(options, hooks);
  if (!output.quiet) fmt::print(stderr, "\n");
  print_result(output.json ? json(summary).dump() : summary.verdict);
  if (summary.outcome == Outcome::interrupted) return interrupted;
  return tolerance->count() > 0 && summary.outcome != Outcome::converged ? failed : done;
}

}  // namespace

void add_recover(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("recover",
                                      "Make a planted problem, learn it from a stream of rows, and report "
                                      "the recovery error as it falls");
  auto command = std::make_shared<Recover>();
  command->add_to(*verb);
  verb->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
