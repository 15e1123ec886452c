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
const Choices<Solver> train_solvers{{"auto", Solver::automatic},
                                    {"kalman", Solver::kalman},
                                    {"moment", Solver::moment},
                                    {"newton", Solver::newton},
                                    {"variational", Solver::variational}};

struct Train {
  TrainOptions options;
  Output output;

  void add_to(CLI::App& verb);
  int run();

 private:
  void print_start(const TrainStart& start);
  void print_line(const TrainProgress& point);
  void print_status(const TrainProgress& point) const;
  void print_step(const RefineProgress& step);
  void print_summary(const TrainSummary& summary) const;
  [[nodiscard]] nlohmann::ordered_json json(const TrainSummary& summary) const;

  const char* loss_ = "rmse";
  bool has_steps_ = false;
};

void Train::add_to(CLI::App& verb) {
  add_data(verb, options.data, "Rows to learn from: files, or - for standard input");
  verb.add_option("-m,--model", options.model_path, "The file for the model")->required()->type_name("MODEL");
  add_choice(verb, "--kind", options.kind, optional_choices(kinds),
             "gfm: all of b + w'x + x'Mx; sensing: x'Mx alone; phase: (a'x)^2; bilinear: b + w'x + v'z + x'Mz; default "
             "gfm");
  verb.add_option("--target", options.columns.target, "csv, tsv: the column to predict")->type_name("NAME");
  add_choice(verb, "--task", options.columns.task, or_automatic(tasks),
             "auto: classification for 0 and 1, -1 and +1, or text");
  add_number(verb, "--rank", options.rank, "K", "Rank of M; default 8 (phase: 1)");
  add_choice(
      verb, "--solver", options.solver, optional_choices(train_solvers),
      "Who learns: kalman goes row by row with a variance for every number, moment is the paper's; newton and "
      "variational read the rows of a file again and again; auto is kalman, then newton for dense and variational for "
      "sparse rows of a file, if --memory allows it");
  add_number(verb, "--passes", options.passes, "P",
             "1: read each row once; P: then P - 1 sweeps or ridges; default: as long as held-out rows get better");
  const auto read_range = [this](const std::string& given) {
    const std::size_t comma = given.find(',');
    const auto low = parse_number<double>(given.substr(0, comma));
    const auto high = comma == std::string::npos ? low : parse_number<double>(given.substr(comma + 1));
    if (!low || !high) throw CLI::ValidationError("--range", fmt::format("expected LO,HI, got '{}'", given));
    options.range = std::pair(*low, *high);
  };
  verb.add_option_function<std::string>(
          "--range", read_range,
          "Targets cannot leave this range, and those at its ends may stand for more; default: found in the first rows")
      ->type_name("LO,HI");
  add_number(verb, "--forget", options.half_life, "H",
             "Halve the weight of old data every H rows, for streams that drift; default: never");
  add_size(verb, "--memory", options.memory,
           "For rows that are kept, such as 200M; more rows go to a private file on disk; 0: none, one pass; "
           "default 1G");
  add_choice(verb, "--diagonal", options.diagonal, or_automatic(diagonals),
             "gfm: squares x_j^2 tied to M, left out (zero), or with weights of their own (free); auto: free where "
             "there are columns of numbers, zero for categories and flags alone");
  add_columns(verb, "--categorical", options.columns.categorical, "csv, tsv: columns of names that look like numbers");
  add_columns(verb, "--ignore", options.columns.ignored, "csv, tsv: columns to pass over");
  verb.add_option("--weight", options.columns.weight, "csv, tsv: the column that says how often a row counts")
      ->type_name("COL");
  add_columns(verb, "--right", options.columns.right,
              "bilinear: the columns of the second factor, by name; libsvm, npy: FIRST-LAST or FIRST-");
  add_number(verb, "--hash-bits", options.columns.hash_bits, "B",
             "Let categories share 2^B features instead of remembering each one");
  add_number(verb, "--index-base", options.columns.index_base, "0|1",
             "libsvm: the smallest index; 0, the default, serves one-based files, too, 1 refuses an index 0");
  verb.add_option("--validation", options.validation_path,
                  "A file to measure the finished model on, and to say when to stop reading again")
      ->type_name("FILE");
  verb.add_flag("--resume", options.resume, "Go on with the model in MODEL as if these rows had followed its own");
  add_number(verb, "--checkpoint-every", options.checkpoint_every, "ROWS", "Save the model every so many rows");
  add_number(
      verb, "--batch", options.batch, "N",
      "Rows in the first update; default 6 x rank x features, at most 4096; batches grow where steps fall short");
  add_choice(verb, "--precision", options.precision, optional_choices(precisions),
             "Of the numbers in the model; default double");
  add_number(verb, "--threads", options.threads, "T", "Default: all cores");
  add_number(verb, "--seed", options.seed, "S", "The same seed, rows and threads give the same model; default 1");
  output.add_to(verb);
}

/// The text as one word of a shell.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=,.:/@%";
  if (text.find_first_not_of(plain) == std::string::npos) return text;
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return word + "'";
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 12;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) shown.push_back(escape_unprintable(names[i]));
  const std::string list = fmt::format("{}", fmt::join(shown, ", "));
  return names.size() <= most ? list : fmt::format("{}, ... ({} in all)", list, names.size());
}

void Train::print_start(const TrainStart& start) {
  const std::string target = start.target.empty() ? "the target" : escape_unprintable(start.target);
  const std::string negative = escape_unprintable(start.negative);
  const std::string positive = escape_unprintable(start.positive);
  if (start.task != Task::classification)
    print_message("predict   {}, a number\n", target);
  else if (start.negative.empty() || start.positive.empty())
    print_message("predict   {}, a class; only '{}' so far\n", target, negative + positive);
  else
    print_message("predict   the probability that {} is '{}' rather than '{}'\n", target, positive, negative);
  if (!start.numbers.empty())
    print_message("numbers   {}{}\n", listed(start.numbers),
                  start.kind == Kind::sensing || start.kind == Kind::phase
                      ? ""
                      : fmt::format("; centred and scaled by the first {} rows", start.first_rows));
  if (!start.categories.empty()) print_message("names     {}\n", listed(start.categories));
  if (start.has_low || start.has_high)
    print_message("range     {}: targets at the end may stand for more, predictions stay within\n",
                  start.has_low && start.has_high ? fmt::format("{:g} to {:g}", start.low, start.high)
                  : start.has_low                 ? fmt::format("from {:g}", start.low)
                                                  : fmt::format("up to {:g}", start.high));
  print_message("learning  {}, rank {}{}, {} features so far\n", word_for(kinds, start.kind), start.rank,
                start.kind == Kind::gfm ? ", diagonal " + word_for(diagonals, start.diagonal) : "", start.features);
  print_message("solver    {}\n", start.plan);
  if (start.rows_before > 0) print_message("resuming  after {} rows\n", start.rows_before);
  loss_ = loss_name(start.task);
  print_heading("\n{:>12} {:>12} {:>12} {:>12} {:>9} {:>9}\n{:>12} {:>12} {:>12} {:>12} {:>9} {:>9}\n", "", loss_,
                loss_, "best", "", "peak", "rows", "so far", "since last", "constant", "rows/s", "memory");
}

/// Empty for NaN.
std::string number_or_nothing(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

void Train::print_line(const TrainProgress& point) {
  print_message("{:>12} {:>12} {:>12} {:>12.6g} {:>9} {:>6} MB\n", point.rows, number_or_nothing(point.average_loss),
                number_or_nothing(point.recent_loss), point.constant_loss, short_count(point.rows_per_second),
                point.rss_bytes / 1'000'000);
}

void Train::print_status(const TrainProgress& point) const {
  show_status(fmt::format("{:>12} rows, {} {}, {} rows/s", point.rows, loss_, number_or_nothing(point.average_loss),
                          short_count(point.rows_per_second)));
}

void Train::print_step(const RefineProgress& step) {
  if (!std::exchange(has_steps_, true))
    print_heading("\n{:>20} {:>12} {:>12} {:>8}\n", "all rows again", "objective", "held out", "seconds");
  print_message("{:>20} {:>12} {:>12} {:>8.2f}{}\n", step.level, number_or_nothing(step.objective),
                number_or_nothing(step.held_out), step.seconds, step.is_refit ? "  with all rows" : "");
}

void Train::print_summary(const TrainSummary& summary) const {
  const bool has_metrics = !std::isnan(summary.progressive.loss);
  print_message("\n{} rows in {:.2f} s ({} rows/s), {} features{}\n", summary.rows, summary.seconds,
                short_count(static_cast<double>(summary.rows) / summary.seconds), summary.features,
                has_metrics ? "; each row predicted before it was learned:" : "");
  if (has_metrics) {
    print_message("  all rows     {}\n", sentence_of(summary.progressive));
    print_message("  latest rows  {}\n", sentence_of(summary.metrics));
  }
  if (summary.validation) print_message("  validation   {}\n", sentence_of(*summary.validation));
  if (summary.improvement) {
    const Improvement& rows = *summary.improvement;
    const double less = 100 * (1 - rows.refined / rows.one_pass);
    print_message("{} rows {}: {} {:.6g} after one pass, {}\n", rows.held_out_rows,
                  options.validation_path.empty() ? "held out" : "for validation", loss_, rows.one_pass,
                  summary.passes == 1 ? std::string("which reading again does not improve")
                                      : fmt::format("{:.6g} after reading again ({:.2g}% {})", rows.refined,
                                                    std::abs(less), less > 0 ? "less" : "more"));
  }
  print_message("learned {}{}\n", summary.origin,
                summary.noise > 0 ? fmt::format("; noise {:.4g}", summary.noise) : "");
  if (summary.outcome == Outcome::interrupted && summary.has_learned_all)
    print_message("\ninterrupted while rows were read again; {} holds what one pass has learned from all of them\n",
                  options.model_path);
  else if (summary.outcome == Outcome::interrupted)
    print_message("\ninterrupted; {} holds what was learned from {} rows, go on with --resume from row {}\n",
                  options.model_path, summary.all_rows, summary.rows + 1);
  else
    print_message("\nThe model is in {}. Predict with it:\n  dyad predict -m {} DATA -o predictions.txt\n",
                  options.model_path, shell_word(options.model_path));
}

nlohmann::ordered_json Train::json(const TrainSummary& summary) const {
  nlohmann::ordered_json fields = json_of_run(summary);
  fields["row_reads"] = summary.row_reads;
  fields["all_rows"] = summary.all_rows;
  fields["solver"] = word_for(train_solvers, summary.solver);
  fields["origin"] = summary.origin;
  if (summary.noise > 0) fields["noise"] = summary.noise;
  fields["passes"] = summary.passes;
  if (summary.improvement)
    fields["held_out"] = {{"rows", summary.improvement->held_out_rows},
                          {"one_pass", summary.improvement->one_pass},
                          {"refined", summary.improvement->refined}};
  fields["features"] = summary.features;
  fields["checkpoints"] = summary.checkpoints;
  if (summary.rows > 0) {
    fields["metrics"] = json_of(summary.metrics);
    fields["progressive"] = json_of(summary.progressive);
  }
  if (summary.validation) fields["validation"] = json_of(*summary.validation);
  fields["is_constant"] = summary.is_constant;
  fields["warnings"] = summary.warnings;
  return fields;
}

int Train::run() {
  watch_for_interrupts();
  work_on_without_readers();
  TrainHooks hooks;
  hooks.interrupted = interrupted_by_user;
  if (!output.quiet) {
    hooks.start = [this](const TrainStart& start) { print_start(start); };
    hooks.progress = [this](const TrainProgress& point) { print_line(point); };
    if (has_status_line()) hooks.status = [this](const TrainProgress& point) { print_status(point); };
    hooks.refine = [this](const RefineProgress& step) { print_step(step); };
  }
  const TrainSummary summary = train(options, hooks);
  if (!output.quiet) {
    if (summary.rows > 0)
      print_summary(summary);
    else
      print_message(
          "interrupted before the first block of rows, which decides about the columns, was complete; nothing was "
          "learned or saved\n");
    for (const std::string& warning : summary.warnings) print_marked(Style::yellow, "warning:", warning);
  }
  if (output.json) print_result(json(summary).dump());
  return summary.outcome == Outcome::interrupted ? interrupted : done;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("train", "Learn a model from files or a pipe");
  auto command = std::make_shared<Train>();
  command->add_to(*verb);
  verb->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
