#include <dyad/train.h>

#include <cmath>
#include <memory>
#include <utility>

#include "command.h"
#include "data_arguments.h"
#include "enum_names.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

const Choices<Task> tasks(task_names.begin(), task_names.end());
const Choices<Precision> precisions{{"double", Precision::double_precision}, {"single", Precision::single_precision}};
const Choices<Solver> train_solvers{
    {"auto", Solver::automatic}, {"kalman", Solver::kalman},           {"moment", Solver::moment},
    {"newton", Solver::newton},  {"variational", Solver::variational}, {"sampling", Solver::sampling},
    {"anova", Solver::anova}};

/// Options, progress tables and results of train.
struct Train {
  TrainOptions options;
  OutputFlags output;

  void add_to(CLI::App& subcommand);
  int run();

 private:
  void print_start(const TrainStart& start);
  void print_progress(const TrainProgress& point);
  void print_status(const TrainProgress& point) const;
  void print_multi_pass(const MultiPassProgress& step);
  void print_summary(const TrainSummary& summary) const;
  [[nodiscard]] nlohmann::ordered_json json(const TrainSummary& summary) const;

  const char* loss_ = "rmse";            ///< name of the loss in tables
  bool has_multi_pass_heading_ = false;  ///< the heading of the multi-pass table was printed
};

void Train::add_to(CLI::App& subcommand) {
  add_data(subcommand, options.data, "Files of rows, or - for standard input");
  subcommand.add_option("-m,--model", options.model_path, "Model file to write")->required()->type_name("MODEL");
  add_choice(subcommand, "--kind", options.kind, optional_choices(kinds),
             "Model: gfm (generalized factorization machine): b + w'x + x'Mx; sensing (matrix sensing): x'Mx; phase "
             "(phase retrieval): (a'x)^2; bilinear: b + w'x + v'z + x'Mz; default gfm");
  subcommand.add_option("--target", options.columns.target, "csv, tsv: column to predict; required without --resume")
      ->type_name("NAME");
  add_choice(subcommand, "--task", options.columns.task, choices_with_auto(tasks),
             "auto: classification if the targets are 0 and 1, -1 and +1, or text, else regression; more than two "
             "classes need files, which are read several times; default auto");
  add_number(subcommand, "--rank", options.rank, "K", "Rank of M; default 8 (one pass over sparse rows: 8 or 16), phase: 1");
  add_choice(
      subcommand, "--solver", options.solver, optional_choices(train_solvers),
      "kalman: online Bayesian updates, one pass; moment: method of moments (Lin and Ye 2016), one pass; newton: "
      "Gauss-Newton, multi-pass; variational: variational inference, multi-pass; sampling: average of posterior "
      "samples "
      "with noise per feature, multi-pass; anova: functions of columns and pairs "
      "with smoothness estimated by REML, for tables; auto: anova for tables and matrices with a numeric column, at "
      "most "
      "200 columns and 64 levels per column, unless --rank, --diagonal, --kind, --passes, --batch, --forget or "
      "--hash-bits is given; otherwise kalman, then for rows from files sampling (sparse rows that fit in --memory) or "
      "newton (other rows); default auto");
  add_choice(subcommand, "--curves", options.has_curves, Choices<bool>{{"auto", true}, {"off", false}},
             "anova: off restricts the model to weights, squares and products; default auto");
  add_number(subcommand, "--passes", options.passes, "P",
             "1: one pass; P > 1: the first pass and P - 1 levels (sweeps or ridges) of a multi-pass solver; default: "
             "as many levels as decrease the loss of held-out rows; kalman: at most P passes of the filter, while they "
             "decrease that loss; default 1");
  add_number(subcommand, "--samples", options.samples, "N",
             "sampling: number of samples in the average; default: until the estimated excess of the held-out loss is "
             "0.1%, at most 300");
  const auto parse_range = [this](const std::string& text) {
    const std::size_t comma = text.find(',');
    const auto low = parse_number<double>(text.substr(0, comma));
    const auto high = comma == std::string::npos ? low : parse_number<double>(text.substr(comma + 1));
    if (!low || !high) throw CLI::ValidationError("--range", fmt::format("expected LO,HI, got '{}'", text));
    options.range = std::pair(*low, *high);
  };
  subcommand
      .add_option_function<std::string>(
          "--range", parse_range,
          "Bounds of the target; targets equal to a bound are censored observations; default: estimated from the first "
          "rows")
      ->type_name("LO,HI");
  add_number(subcommand, "--forget", options.half_life, "H",
             "Half-life in rows: the weight of a row halves every H rows; default: no forgetting");
  add_size(subcommand, "--memory", options.memory,
           "Memory for cached rows, such as 200M; further rows are cached in a temporary file; 0: no cache, one pass; "
           "default 1G");
  add_choice(subcommand, "--diagonal", options.diagonal, choices_with_auto(diagonals),
             "gfm: coefficients of x_j^2: M_jj (tied), none (zero) or independent of M (free); auto: free if there are "
             "numeric columns, else zero; default auto");
  add_columns(subcommand, "--categorical", options.columns.categorical,
              "csv, tsv: columns that are categorical although they contain numbers");
  add_columns(subcommand, "--ignore", options.columns.ignored, "csv, tsv: columns to ignore");
  subcommand.add_option("--weight", options.columns.weight, "csv, tsv: column of row weights")->type_name("COL");
  add_columns(subcommand, "--right", options.columns.right,
              "bilinear: columns of z, by name; libsvm, npy: range FIRST-LAST or FIRST-");
  add_number(subcommand, "--hash-bits", options.columns.hash_bits, "B",
             "Hash categories to 2^B features; default: one feature per category");
  add_number(subcommand, "--index-base", options.columns.index_base, "0|1",
             "libsvm: smallest valid index; 0 accepts one-based files too, 1 rejects the index 0; default 0");
  subcommand
      .add_option("--groups", options.columns.groups_path,
                  "libsvm: file with the prior group of each feature, one name or number per line, the first line for "
                  "the index of --index-base; default: one group")
      ->type_name("FILE");
  subcommand
      .add_option("--validation", options.validation_path,
                  "File of validation rows, for the selection of the level (see --passes) and for the final metrics")
      ->type_name("FILE");
  subcommand.add_flag("--resume", options.resume, "Continue training the model in MODEL with these rows");
  add_number(subcommand, "--checkpoint-every", options.checkpoint_every, "ROWS",
             "Save the model every ROWS rows; not for more than two classes; default: at the end only");
  add_number(subcommand, "--batch", options.batch, "N",
             "moment: rows in the first update; default min(6 x rank x features, 4096); batches grow if a step is not "
             "accepted");
  add_choice(subcommand, "--precision", options.precision, optional_choices(precisions),
             "Floating-point type of the parameters; default double");
  add_number(subcommand, "--threads", options.threads, "T", "Number of threads; default: all cores");
  add_number(subcommand, "--seed", options.seed, "S",
             "Random seed; equal seed, rows and threads give equal models; default 1");
  output.add_to(subcommand);
}

/// Quotes the text as one word of a POSIX shell.
std::string quote_for_shell(const std::string& text) {
  constexpr std::string_view safe_characters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=,.:/@%";
  if (text.find_first_not_of(safe_characters) == std::string::npos) return text;
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

/// Joins names by commas. Long lists are truncated.
std::string join_names(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 12;  // about two lines of a terminal with short names
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(max_names, names.size()); ++i) shown.push_back(escape_unprintable(names[i]));
  const std::string list = fmt::format("{}", fmt::join(shown, ", "));
  return names.size() <= max_names ? list : fmt::format("{}, ... ({} columns)", list, names.size());
}

/// Distribution of the target: "gaussian", "gaussian, censored at 1 and 5" or "bernoulli, P(y = "yes")".
std::string describe_likelihood(const TrainStart& start) {
  if (!start.classes.empty())
    return fmt::format("bernoulli for each of {} classes: {}", start.classes.size(), join_names(start.classes));
  if (start.task == Task::classification) {
    if (start.negative.empty() || start.positive.empty())
      return fmt::format("bernoulli, one class so far: \"{}\"", escape_unprintable(start.negative + start.positive));
    return fmt::format("bernoulli, P({} = \"{}\")", start.target.empty() ? "y" : escape_unprintable(start.target),
                       escape_unprintable(start.positive));
  }
  if (start.has_low && start.has_high) return fmt::format("gaussian, censored at {:g} and {:g}", start.low, start.high);
  if (start.has_low) return fmt::format("gaussian, censored at {:g} (lower bound)", start.low);
  if (start.has_high) return fmt::format("gaussian, censored at {:g} (upper bound)", start.high);
  return "gaussian";
}

void Train::print_start(const TrainStart& start) {
  if (!start.target.empty()) print_message("target       {}\n", escape_unprintable(start.target));
  const bool is_measurement = start.kind == Kind::sensing || start.kind == Kind::phase;
  if (!start.numeric.empty())
    print_message("numeric      {}{}\n", join_names(start.numeric),
                  is_measurement || !start.classes.empty()
                      ? ""
                      : fmt::format("; standardized with the first {} rows", start.first_rows));
  if (!start.categorical.empty()) print_message("categorical  {}\n", join_names(start.categorical));
  print_message("likelihood   {}\n", describe_likelihood(start));
  if (start.rank > 0)
    print_message("model        {}, rank {}{}, {} features\n", choice_name(kinds, start.kind), start.rank,
                  start.kind == Kind::gfm ? ", diagonal " + choice_name(diagonals, start.diagonal) : "",
                  start.features);
  print_message("solver       {}\n", start.plan);
  if (start.rows_before > 0) print_message("resumed      after {} rows\n", start.rows_before);
  loss_ = loss_name(start.task);
  if (!start.classes.empty()) return;  // only the progress of multi-pass training is reported
  print_heading("\n{:>12} {:>12} {:>12} {:>12} {:>9} {:>9}\n", "rows", loss_, "recent", "constant", "rows/s", "memory");
}

/// Formats a number. Returns an empty string for NaN, which stands for a value that was not measured.
std::string format_unless_nan(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

void Train::print_progress(const TrainProgress& point) {
  print_message("{:>12} {:>12} {:>12} {:>12.6g} {:>9} {:>6} MB\n", point.rows, format_unless_nan(point.average_loss),
                format_unless_nan(point.recent_loss), point.constant_loss, format_count(point.rows_per_second),
                point.rss_bytes / 1'000'000);
}

void Train::print_status(const TrainProgress& point) const {
  show_status(fmt::format("{:>12} rows, {} {}, {} rows/s", point.rows, loss_, format_unless_nan(point.average_loss),
                          format_count(point.rows_per_second)));
}

void Train::print_multi_pass(const MultiPassProgress& step) {
  if (!std::exchange(has_multi_pass_heading_, true))
    print_heading("\n{:>34} {:>12} {:>12} {:>8}\n", "level", "objective",
                  options.validation_path.empty() ? "held-out" : "validation", "seconds");
  print_message("{:>34} {:>12} {:>12} {:>8.2f}{}\n", step.level, format_unless_nan(step.objective),
                format_unless_nan(step.held_out), step.seconds, step.is_refit ? "  refit on all rows" : "");
}

void Train::print_summary(const TrainSummary& summary) const {
  print_message("\n{} rows in {:.2f} s ({} rows/s), {} features\n", summary.rows, summary.seconds,
                format_count(static_cast<double>(summary.rows) / summary.seconds), summary.features);
  if (!summary.classes.empty()) {
    if (!std::isnan(summary.metrics.loss))
      print_message("held-out     {}\ntemperature  {:.4g}\n", format_metrics(summary.metrics), summary.temperature);
  } else if (!std::isnan(summary.progressive.loss)) {
    print_message("progressive  {}\n", format_metrics(summary.progressive));
    print_message("recent       {}\n", format_metrics(summary.metrics));
  } else if (summary.solver == Solver::anova && !std::isnan(summary.metrics.loss)) {
    print_message("{}  {}\n", summary.task == Task::regression ? "estimated  " : "training   ",
                  format_metrics(summary.metrics));
  }
  if (summary.validation) print_message("validation   {}\n", format_metrics(*summary.validation));
  if (summary.held_out) {
    const HeldOutLosses& losses = *summary.held_out;
    print_message("multi-pass   {} {} rows: {} {:.6g} after one pass, {}\n", losses.held_out_rows,
                  options.validation_path.empty() ? "held-out" : "validation", loss_, losses.one_pass,
                  summary.passes == 1 ? std::string("not reduced by further passes")
                                      : fmt::format("{:.6g} after {} passes ({:+.2g}%)", losses.multi_pass,
                                                    summary.passes, 100 * (losses.multi_pass / losses.one_pass - 1)));
  }
  if (summary.noise > 0) print_message("noise        {:.4g} (standard deviation)\n", summary.noise);
  print_message("fitted by    {}\n", summary.origin);
  if (summary.outcome == Outcome::interrupted && summary.samples > 0)
    print_message("\ninterrupted during sampling; {} contains the average of {} samples\n", options.model_path,
                  summary.samples);
  else if (summary.outcome == Outcome::interrupted && summary.has_read_all_rows)
    print_message("\ninterrupted during multi-pass training; {} contains the model of one pass over all rows\n",
                  options.model_path);
  else if (summary.outcome == Outcome::interrupted)
    print_message("\ninterrupted; {} contains the model of {} rows; continue with --resume from row {}\n",
                  options.model_path, summary.all_rows, summary.rows + 1);
  else
    print_message("\nmodel written to {}; predict with\n  dyad predict -m {} DATA -o predictions.txt\n",
                  options.model_path, quote_for_shell(options.model_path));
}

nlohmann::ordered_json Train::json(const TrainSummary& summary) const {
  nlohmann::ordered_json fields = run_json(summary);
  fields["row_reads"] = summary.row_reads;
  fields["all_rows"] = summary.all_rows;
  fields["solver"] = choice_name(train_solvers, summary.solver);
  fields["origin"] = summary.origin;
  if (summary.noise > 0 || summary.status) fields["noise"] = summary.noise;
  if (summary.status) {
    fields["status"] = choice_name(fit_statuses, *summary.status);
    fields["outliers"] = summary.outliers;
  }
  fields["passes"] = summary.passes;
  fields["rank"] = summary.rank;
  if (summary.samples > 0) fields["samples"] = summary.samples;
  fields["order"] = choice_name(order_remedies, summary.order);
  if (summary.held_out)
    fields["held_out"] = {{"rows", summary.held_out->held_out_rows},
                          {"one_pass", summary.held_out->one_pass},
                          {"multi_pass", summary.held_out->multi_pass}};
  fields["features"] = summary.features;
  fields["checkpoints"] = summary.checkpoints;
  if (!summary.classes.empty()) {
    fields["classes"] = summary.classes;
    fields["temperature"] = summary.temperature;
  }
  if (summary.rows > 0) {
    fields["metrics"] = metrics_json(summary.metrics);
    fields["progressive"] = metrics_json(summary.progressive);
  }
  if (summary.validation) fields["validation"] = metrics_json(*summary.validation);
  fields["is_constant"] = summary.is_constant;
  fields["warnings"] = summary.warnings;
  return fields;
}

int Train::run() {
  install_interrupt_handlers();
  ignore_broken_pipe_signal();
  TrainHooks hooks;
  hooks.interrupted = is_interrupted;
  if (!output.quiet) {
    hooks.start = [this](const TrainStart& start) { print_start(start); };
    hooks.progress = [this](const TrainProgress& point) { print_progress(point); };
    if (has_status_line()) hooks.status = [this](const TrainProgress& point) { print_status(point); };
    hooks.multi_pass = [this](const MultiPassProgress& step) { print_multi_pass(step); };
  }
  TrainSummary summary = train(options, hooks);
  for (std::string& warning : summary.warnings) warning = with_option_names(warning);
  if (!output.quiet) {
    if (summary.outcome == Outcome::interrupted && !summary.classes.empty())
      print_message(
          "interrupted; no model was written, because a model of more than two classes is written at the end\n");
    else if (summary.rows > 0)
      print_summary(summary);
    else
      print_message("interrupted before the first block of rows was complete; no model was written\n");
    for (const std::string& warning : summary.warnings) print_warning(warning);
  }
  if (output.json) print_result(json(summary).dump());
  return summary.outcome == Outcome::interrupted ? interrupted : success;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand("train", "Train a model on files or standard input");
  auto command = std::make_shared<Train>();
  command->add_to(*subcommand);
  subcommand->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
