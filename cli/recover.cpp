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

namespace dyad::cli {
namespace {

const Choices<Solver> recover_solvers{
    {"auto", Solver::automatic}, {"moment", Solver::moment}, {"kalman", Solver::kalman}, {"newton", Solver::newton}};
const Choices<Update> updates{{"one-scan", Update::one_scan}, {"paper", Update::paper}};
const Choices<Moments> all_moments{
    {"auto", Moments::automatic}, {"gaussian", Moments::gaussian}, {"estimated", Moments::estimated}};
struct Recover {
  RecoverOptions options;
  Output output;
  PlantedArguments planted;
  CLI::Option* tolerance = nullptr;

  void add_to(CLI::App& verb);
  int run();

 private:
  [[nodiscard]] std::string how() const;
  [[nodiscard]] double rows_per_unknown(const RecoverySummary& summary) const;
  void print_banner() const;
  void note(const RecoveryPoint& point);
  void print_line(const RecoveryPoint& point);
  void print_theory_line(const RecoveryPoint& point) const;
  void print_theory_summary(const RecoverySummary& summary) const;
  [[nodiscard]] nlohmann::ordered_json json(const RecoverySummary& summary) const;

  RecoveryPoint last_;
  double error_before_ = NAN;
  Index rows_before_ = 0;
  double seconds_before_ = 0;
};

void Recover::add_to(CLI::App& verb) {
  planted.add_to(verb, options.problem);
  add_number(verb, "--rows", options.rows, "N", "Distinct rows that may be used; default 1000kd, or 60 batches");
  tolerance =
      add_number(verb, "--tolerance", options.tolerance, "E",
                 "Stop when |w - w*| + |M - M*|_2 is down to this, default 1e-6; exit 1 if given and not reached");
  add_number(verb, "--batch", options.batch, "N", "Rows in one update; default 6kd (bilinear: d = D1 + D2)");
  add_choice(
      verb, "--solver", options.solver, recover_solvers,
      "Who learns: moment is the paper; kalman goes row by row and keeps nothing; newton keeps all rows; auto keeps "
      "a few at the start if --memory allows it, then is kalman; --batch, --update, --moments and --theory mean "
      "moment");
  add_choice(verb, "--update", options.update, optional_choices(updates),
             "The moment solver's update; default one-scan");
  add_size(verb, "--memory", options.memory, "For rows that are kept, such as 200M; 0: none; default 1G");
  add_choice(verb, "--moments", options.moments, all_moments,
             "Third and fourth moments of the features: as for Gaussian ones, or estimated; default auto");
  verb.add_flag("--theory", options.theory, "Show the proof's constants and bounds beside what is measured");
  add_number(verb, "--threads", options.threads, "T", "Default: all cores");
  output.add_to(verb);
}

double Recover::rows_per_unknown(const RecoverySummary& summary) const {
  return static_cast<double>(summary.cached_rows) / static_cast<double>(options.unknowns());
}

/// Who learns, and why.
std::string Recover::how() const {
  const std::string asked = options.solver == Solver::automatic ? "auto: " : "";
  switch (options.chosen_solver()) {
    case Solver::moment:
      return fmt::format("{}moment solver{}, {} update, batches of {} rows ({:.3g} kd)", asked,
                         asked.empty() ? "" : ", for what is asked is its own",
                         word_for(updates, options.update.value_or(Update::one_scan)), options.batch_rows(),
                         static_cast<double>(options.batch_rows()) / static_cast<double>(options.problem.kd()));
    case Solver::newton:
      return "newton: all rows are kept";
    case Solver::kalman:
      return "kalman: row by row, from what the moments find, nothing kept";
    case Solver::automatic:
    case Solver::variational:
      break;
  }
  return options.memory > 0 ? "auto: the first rows are kept for Gauss-Newton as memory allows, then kalman"
                            : "auto: kalman from what the moments find, for no row may be kept";
}

void Recover::print_banner() const {
  const PlantedOptions& problem = options.problem;
  std::string extras;
  if (!problem.is_bilinear()) extras += fmt::format(", {} signs", word_for(all_signs, problem.signs));
  if (problem.features != Features::gaussian)
    extras += fmt::format(", {} features", word_for(all_features, problem.features));
  if (problem.diagonal != Diagonal::tied) extras += fmt::format(", {} diagonal", word_for(diagonals, problem.diagonal));
  if (problem.intercept) extras += fmt::format(", intercept {:g}", *problem.intercept);
  if (problem.noise > 0) extras += fmt::format(", noise {:g}", problem.noise);
  if (problem.residual > 0) extras += fmt::format(", residual {:g}", problem.residual);
  print_message("planted   {}: d = {}, k = {}, condition {:g}{}, seed {}\n", word_for(kinds, problem.kind),
                dims(problem), problem.rank, problem.condition, extras, problem.seed);
  print_message("learning  {}, {} unknowns, {} threads\n", how(), options.unknowns(),
                options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency()));
  if (const std::string warning = options.warning(); !warning.empty())
    print_marked(Style::yellow, "warning  ", warning);
  if (options.theory)
    print_heading("\n{:>10} {:>8} {:>8} {:>8} {:>19} {:>19} {:>19}  {}\n", "rows", "rows/kd", "CI-RIP", "delta",
                  "tan angle <= bound", "|w-w*| <= bound", "|M-M*|_2 <= bound", "predicted factor");
  else
    print_heading("\n{:>10} {:>8} {:>9} {:>9} {:>9} {:>7} {:>8}  error, 1 down to 1e-9\n", "rows", "rows/kd", "|w-w*|",
                  "|M-M*|_2", "tan angle", "factor", "rows/s");
}

/// A bar whose length is the logarithm of the error: linear convergence is a straight slope.
std::string bar(double error) {
  constexpr double columns_per_decade = 3;
  const double decades = std::clamp(std::log10(error) + 9, 0.0, 9.5);
  return std::isfinite(error) ? std::string(static_cast<std::size_t>(decades * columns_per_decade), '#') : "";
}

/// Every batch of the moment solver; of the others as many lines as can be read.
void Recover::note(const RecoveryPoint& point) {
  constexpr double further = 1.25;
  last_ = point;
  const bool every = options.chosen_solver() == Solver::moment;
  if (every || static_cast<double>(point.rows) >= further * static_cast<double>(rows_before_)) print_line(point);
}

void Recover::print_line(const RecoveryPoint& point) {
  if (options.theory) return print_theory_line(point);
  const auto kd = static_cast<double>(options.problem.kd());
  const double error = point.error();
  print_message(
      "{:>10} {:>8.1f} {:>9.2e} {:>9.2e} {:>9.2e} {:>7} {:>8}  {}\n", point.rows, static_cast<double>(point.rows) / kd,
      point.error_w, point.error_M, point.tan_theta,
      std::isnan(error_before_) ? "" : fmt::format("{:.3g}", error_before_ / error),
      short_count(static_cast<double>(point.rows - rows_before_) / std::max(point.seconds - seconds_before_, 1e-9)),
      bar(error));
  error_before_ = error;
  rows_before_ = point.rows;
  seconds_before_ = point.seconds;
}

void Recover::print_theory_line(const RecoveryPoint& point) const {
  const auto kd = static_cast<double>(options.problem.kd());
  const bool bounded = point.theory && point.theory->applies;
  const auto pair = [&](double measured, double bound) {
    return bounded ? fmt::format("{:.1e} <= {:.1e}", measured, bound) : fmt::format("{:.1e}           ", measured);
  };
  const TheoryPoint theory = point.theory.value_or(TheoryPoint());
  std::string remark = "the start: no update yet";
  if (point.theory && !bounded) remark = "the lemma does not apply yet";
  if (bounded) remark = fmt::format("{:.2f}{}", theory.factor, theory.vacuous() ? ", vacuous" : "");
  print_message("{:>10} {:>8.1f} {:>8} {:>8} {:>19} {:>19} {:>19}  {}\n", point.rows,
                static_cast<double>(point.rows) / kd, point.theory ? fmt::format("{:.1e}", theory.ci_rip) : "",
                point.theory ? fmt::format("{:.1e}", theory.delta) : "", pair(point.tan_theta, theory.alpha_bound),
                pair(point.error_w, theory.beta_bound), pair(point.error_M, theory.gamma_bound), remark);
}

/// What the last column means, for people who have not read the proof.
void Recover::print_theory_summary(const RecoverySummary& summary) const {
  double largest = 0;
  for (const RecoveryPoint& point : summary.trace)
    if (point.theory && point.theory->applies) largest = std::max(largest, point.theory->factor);
  print_message(
      "\nCI-RIP is the measured constant of the shifted CI-RIP theorem on that batch, delta the smallest with which "
      "the\n"
      "estimation sequence lemma holds too; the bounds follow from delta by the recursion lemma.\n");
  if (largest == 0)
    print_message("No update met the lemma's conditions, so the proof predicts nothing here.\n");
  else if (largest < 1)
    print_message("The proof predicts that the error falls by at least {:.2f} times with every batch.\n", 1 / largest);
  else
    print_message(
        "A predicted factor above 1 is vacuous: the proof then says nothing about the rate. That does not matter, for "
        "its\n"
        "bounds add up worst cases that do not happen together; what the error really did stands beside them. The "
        "factor\n"
        "shrinks like 1/sqrt(n): batches of more than about {:.0f}kd rows would bring it below 1.\n",
        std::ceil(largest * largest * static_cast<double>(options.batch_rows()) /
                  static_cast<double>(options.problem.kd())));
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
    if (point.theory)
      fields["theory"] = {{"ci_rip", point.theory->ci_rip},           {"delta", point.theory->delta},
                          {"alpha_bound", point.theory->alpha_bound}, {"beta_bound", point.theory->beta_bound},
                          {"gamma_bound", point.theory->gamma_bound}, {"factor", point.theory->factor},
                          {"applies", point.theory->applies},         {"vacuous", point.theory->vacuous()}};
    return fields;
  };
  nlohmann::ordered_json fields;
  fields = describe(summary.trace.empty() ? summary.start : summary.trace.back());
  fields["rows"] = summary.rows;
  fields["row_reads"] = summary.row_reads;
  fields["seconds"] = summary.seconds;
  fields["rows_per_second"] = summary.rows_per_second();
  fields["peak_rss_bytes"] = summary.peak_rss_bytes;
  fields["outcome"] = word_for(outcomes, summary.outcome);
  fields["outcome_text"] = summary.outcome_text;
  fields["unknowns"] = options.unknowns();
  if (summary.cached_rows > 0) {
    fields["cached_rows"] = summary.cached_rows;
    fields["rows_per_unknown"] = rows_per_unknown(summary);
    fields["fits_exactly"] = summary.fits_exactly;
  }
  fields["solver"] = word_for(recover_solvers, options.chosen_solver());
  fields["origin"] = summary.origin;
  fields["noise"] = summary.noise;
  if (options.chosen_solver() == Solver::moment) fields["moments"] = word_for(all_moments, summary.moments);
  fields["trace"] = nlohmann::ordered_json::array();
  for (const RecoveryPoint& point : summary.trace) fields["trace"].push_back(describe(point));
  return fields;
}

int Recover::run() {
  watch_for_interrupts();
  work_on_without_readers();
  planted.complete(options.problem);
  options.validate();
  RecoveryHooks hooks;
  hooks.interrupted = interrupted_by_user;
  if (!output.quiet) {
    print_banner();
    hooks.progress = [this](const RecoveryPoint& point) { note(point); };
  }
  const RecoverySummary summary = recover(options, hooks);
  if (!output.quiet) {
    if (last_.rows > rows_before_ && !options.theory) print_line(last_);
    if (summary.cached_rows > 0)
      print_message("\ncached rows {}, {:.2f} times the {} unknowns: {}\n", summary.cached_rows,
                    rows_per_unknown(summary), options.unknowns(),
                    summary.fits_exactly ? "they are fitted exactly" : "they are not fitted exactly");
    if (options.theory && !summary.trace.empty()) print_theory_summary(summary);
    print_message("\n");
  }
  print_result(output.json ? json(summary).dump() : summary.outcome_text);
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
