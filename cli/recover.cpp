#include <dyad/recover.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <thread>

#include <nlohmann/json.hpp>

#include "command.h"
#include "data_arguments.h"
#include "exit_code.h"
#include "planted_options.h"
#include "theory_table.h"

namespace dyad::cli {
namespace {

const Choices<Solver> recover_solvers{
    {"auto", Solver::automatic}, {"moment", Solver::moment}, {"kalman", Solver::kalman}, {"newton", Solver::newton}};
const Choices<Update> updates{{"one-scan", Update::one_scan}, {"paper", Update::paper}};
const Choices<Moments> moment_choices{
    {"auto", Moments::automatic}, {"gaussian", Moments::gaussian}, {"estimated", Moments::estimated}};

/// Options, progress table and results of recover.
struct Recover {
  RecoverOptions options;
  OutputFlags output;
  PlantedArguments planted;
  CLI::Option* tolerance = nullptr;  ///< decides the exit code if it is set

  void add_to(CLI::App& subcommand);
  int run();

 private:
  [[nodiscard]] std::string describe_solver() const;
  [[nodiscard]] double rows_per_unknown(const RecoverySummary& summary) const;
  void print_start() const;
  void report_progress(const RecoveryPoint& point);
  void print_line(const RecoveryPoint& point);
  [[nodiscard]] nlohmann::ordered_json json(const RecoverySummary& summary) const;

  RecoveryPoint last_;          ///< latest point, printed or not
  double printed_error_ = NAN;  ///< of the last printed point; NaN: none
  Index printed_rows_ = 0;      ///< of the last printed point
  double printed_seconds_ = 0;  ///< of the last printed point
};

void Recover::add_to(CLI::App& subcommand) {
  planted.add_to(subcommand, options.problem);
  add_number(subcommand, "--rows", options.rows, "N",
             "Maximum number of distinct rows; default max(1000kd, 60 batches)");
  tolerance = add_number(subcommand, "--tolerance", options.tolerance, "E",
                         "Stop when |w - w*| + |M - M*|_2 <= E, with the planted w* and M*; default 1e-6; exit code 1 "
                         "if set and not reached");
  add_number(subcommand, "--batch", options.batch, "N", "moment: rows per update; default 6kd (bilinear: d = D1 + D2)");
  add_choice(
      subcommand, "--solver", options.solver, recover_solvers,
      "moment: method of moments (Lin and Ye 2016); kalman: online Bayesian updates; newton: least squares on cached "
      "rows by log-det IRLS or relaxed reflections, then Gauss-Newton; auto: newton on the first rows within --memory, "
      "then kalman, or moment if --batch, --update, --moments or --theory is set; default auto");
  add_choice(
      subcommand, "--update", options.update, optional_choices(updates),
      "moment: update rule; one-scan: each row is read once; paper: Algorithm 1 of Lin and Ye 2016, except that the "
      "SVD and the first step use separate batches, because the proof requires independent rows, and that M is "
      "exported at rank k, because (UV' + VU')/2 has rank 2k before convergence; default one-scan");
  add_size(subcommand, "--memory", options.memory, "Memory for cached rows, such as 200M; 0: no cache; default 1G");
  add_choice(subcommand, "--moments", options.moments, moment_choices,
             "moment: third and fourth moments of the features, Gaussian or estimated; default auto");
  subcommand.add_flag(
      "--theory", options.theory,
      "moment: print the constants and bounds of the convergence proof next to the measured errors, also "
      "for --noise and --residual");
  add_number(subcommand, "--threads", options.threads, "T", "Number of threads; default: all cores");
  output.add_to(subcommand);
}

double Recover::rows_per_unknown(const RecoverySummary& summary) const {
  return static_cast<double>(summary.cached_rows) / static_cast<double>(options.unknowns());
}

std::string Recover::describe_solver() const {
  const std::string prefix = options.solver == Solver::automatic ? "auto: " : "";
  switch (options.resolved_solver()) {
    case Solver::moment:
      return fmt::format("{}moment, {} update, batches of {} rows ({:.3g} kd)", prefix,
                         choice_name(updates, options.update.value_or(Update::one_scan)), options.batch_rows(),
                         static_cast<double>(options.batch_rows()) / static_cast<double>(options.problem.kd()));
    case Solver::newton:
      return "newton: least squares on all rows, cached";
    case Solver::kalman:
      return "kalman: online updates, initialized by moments";
    case Solver::automatic:
    case Solver::variational:
    case Solver::sampling:
    case Solver::anova:
      break;
  }
  return options.memory > 0 ? "auto: least squares on the first rows within --memory, then kalman"
                            : "auto: kalman, initialized by moments (no memory for cached rows)";
}

void Recover::print_start() const {
  const PlantedOptions& problem = options.problem;
  std::string extras;
  if (!problem.is_bilinear()) extras += fmt::format(", {} signs", choice_name(sign_choices, problem.signs));
  if (problem.features != FeatureDistribution::gaussian)
    extras += fmt::format(", {} features", choice_name(feature_choices, problem.features));
  if (problem.diagonal != Diagonal::tied)
    extras += fmt::format(", {} diagonal", choice_name(diagonals, problem.diagonal));
  if (problem.intercept) extras += fmt::format(", intercept {:g}", *problem.intercept);
  if (problem.noise > 0) extras += fmt::format(", noise {:g}", problem.noise);
  if (problem.residual > 0) extras += fmt::format(", residual {:g}", problem.residual);
  if (problem.outliers > 0) extras += fmt::format(", {:g}% outliers", 100 * problem.outliers);
  print_message("planted   {}: d = {}, k = {}, condition {:g}{}, seed {}\n", choice_name(kinds, problem.kind),
                format_dims(problem), problem.rank, problem.condition, extras, problem.seed);
  print_message("solver    {}; {} unknowns, {} threads\n", describe_solver(), options.unknowns(),
                options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency()));
  if (const std::string warning = options.warning(); !warning.empty()) print_warning(with_option_names(warning));
  if (options.theory)
    print_theory_heading(options);
  else
    print_heading("\n{:>10} {:>8} {:>9} {:>9} {:>9} {:>7} {:>8}  log10 error, 1e-9 to 1\n", "rows", "rows/kd", "|w-w*|",
                  "|M-M*|_2", "tan theta", "factor", "rows/s");
}

/// Bar of length proportional to log10(error / 1e-9). Linear convergence gives a straight line.
std::string bar(double error) {
  constexpr double min_log10_error = -9;  // below it the bar is empty
  constexpr double max_decades = 9.5;     // errors above 10^0.5 have the same bar
  constexpr double characters_per_decade = 3;
  const double decades = std::clamp(std::log10(error) - min_log10_error, 0.0, max_decades);
  return std::isfinite(error) ? std::string(static_cast<std::size_t>(decades * characters_per_decade), '#') : "";
}

/// Prints a line for every batch of the moment solver. For other solvers, which report more often, the number of rows
/// grows geometrically from line to line.
void Recover::report_progress(const RecoveryPoint& point) {
  constexpr double row_growth_per_line = 1.25;  // about ten lines per factor of ten
  last_ = point;
  const bool prints_every_batch = options.resolved_solver() == Solver::moment;
  const double next_rows = row_growth_per_line * static_cast<double>(printed_rows_);
  if (prints_every_batch || static_cast<double>(point.rows) >= next_rows) print_line(point);
}

void Recover::print_line(const RecoveryPoint& point) {
  if (options.theory) return print_theory_line(options, point);
  const auto kd = static_cast<double>(options.problem.kd());
  const double error = point.error();
  print_message(
      "{:>10} {:>8.1f} {:>9.2e} {:>9.2e} {:>9.2e} {:>7} {:>8}  {}\n", point.rows, static_cast<double>(point.rows) / kd,
      point.error_w, point.error_M, point.tan_theta,
      std::isnan(printed_error_) ? "" : fmt::format("{:.3g}", printed_error_ / error),
      format_count(static_cast<double>(point.rows - printed_rows_) / std::max(point.seconds - printed_seconds_, 1e-9)),
      bar(error));
  printed_error_ = error;
  printed_rows_ = point.rows;
  printed_seconds_ = point.seconds;
}

nlohmann::ordered_json Recover::json(const RecoverySummary& summary) const {
  const auto describe = [&](const RecoveryPoint& point) {
    nlohmann::ordered_json fields;
    fields["rows"] = point.rows;
    fields["error_w"] = point.error_w;
    fields["error_M"] = point.error_M;
    if (options.problem.kind == Kind::phase) fields["error_a"] = point.error_a;
    if (options.problem.intercept) fields["error_b"] = point.error_b;
    if (options.problem.diagonal == Diagonal::free) fields["error_squares"] = point.error_squares;
    fields["tan_theta"] = point.tan_theta;
    if (point.theory) fields["theory"] = theory_json(options, *point.theory);
    return fields;
  };
  nlohmann::ordered_json fields;
  fields = describe(summary.trace.empty() ? summary.start : summary.trace.back());
  fields["rows"] = summary.rows;
  fields["row_reads"] = summary.row_reads;
  fields["seconds"] = summary.seconds;
  fields["rows_per_second"] = summary.rows_per_second();
  fields["peak_rss_bytes"] = summary.peak_rss_bytes;
  fields["outcome"] = choice_name(outcomes, summary.outcome);
  fields["outcome_text"] = summary.outcome_text;
  fields["status"] = choice_name(fit_statuses, summary.status);
  fields["unknowns"] = options.unknowns();
  if (summary.cached_rows > 0) {
    fields["cached_rows"] = summary.cached_rows;
    fields["rows_per_unknown"] = rows_per_unknown(summary);
    fields["fits_exactly"] = summary.fits_exactly;
  }
  fields["solver"] = choice_name(recover_solvers, options.resolved_solver());
  fields["origin"] = summary.origin;
  fields["noise"] = summary.noise;
  if (summary.cached_rows > 0) fields["outliers"] = summary.outliers;
  if (std::isfinite(summary.standard_error_M)) fields["standard_error_M"] = summary.standard_error_M;
  if (std::isfinite(summary.standard_error_w)) fields["standard_error_w"] = summary.standard_error_w;
  if (options.problem.kind == Kind::phase && std::isfinite(summary.standard_error_a))
    fields["standard_error_a"] = summary.standard_error_a;
  if (options.resolved_solver() == Solver::moment) fields["moments"] = choice_name(moment_choices, summary.moments);
  fields["trace"] = nlohmann::ordered_json::array();
  for (const RecoveryPoint& point : summary.trace) fields["trace"].push_back(describe(point));
  return fields;
}

int Recover::run() {
  install_interrupt_handlers();
  ignore_broken_pipe_signal();
  planted.complete(options.problem);
  options.validate();
  RecoveryHooks hooks;
  hooks.interrupted = is_interrupted;
  if (!output.quiet) {
    print_start();
    hooks.progress = [this](const RecoveryPoint& point) { report_progress(point); };
  }
  const RecoverySummary summary = recover(options, hooks);
  if (!output.quiet) {
    if (last_.rows > printed_rows_ && !options.theory) print_line(last_);
    if (summary.cached_rows > 0)
      print_message("\n{} cached rows, {:.2f} per unknown ({} unknowns), {}\n", summary.cached_rows,
                    rows_per_unknown(summary), options.unknowns(),
                    summary.fits_exactly ? "fitted exactly" : "not fitted exactly");
    if (options.theory && !summary.trace.empty()) print_theory_summary(options, summary);
    print_message("\n");
  }
  print_result(output.json ? json(summary).dump() : summary.outcome_text);
  if (summary.outcome == Outcome::interrupted) return interrupted;
  return tolerance->count() > 0 && summary.outcome != Outcome::converged ? runtime_failure : success;
}

}  // namespace

void add_recover(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand("recover",
                                            "Estimate a planted model from a stream of its rows and report the "
                                            "recovery error");
  auto command = std::make_shared<Recover>();
  command->add_to(*subcommand);
  subcommand->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
