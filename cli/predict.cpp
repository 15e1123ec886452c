#include <dyad/predict.h>

#include <memory>

#include "command.h"
#include "data_arguments.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

/// `predict` and `evaluate` differ in what they do with the predictions.
struct Predict {
  PredictOptions options;
  Output output;

  void add_to(CLI::App& verb, const char* rows) {
    add_data(verb, options.data, rows);
    verb.add_option("-m,--model", options.model_path, "The model, as train wrote it")->required()->type_name("MODEL");
    add_number(verb, "--threads", options.threads, "T", "Default: all cores");
    output.add_to(verb);
  }

  [[nodiscard]] static nlohmann::ordered_json json(const PredictSummary& summary) {
    nlohmann::ordered_json fields = json_of_run(summary);
    fields["unknown_cells"] = summary.unknown_cells;
    return fields;
  }

  void report(const PredictSummary& summary) const {
    if (output.quiet) return;
    print_message("{} rows in {:.2f} s ({} rows/s)\n", summary.rows, summary.seconds,
                  short_count(static_cast<double>(summary.rows) / summary.seconds));
    if (summary.unknown_cells > 0)
      print_message("{} cells held a category or index that training had not shown; they count as nothing\n",
                    summary.unknown_cells);
    for (const std::string& warning : summary.warnings) print_marked(Style::yellow, "warning:", warning);
  }

  [[nodiscard]] int run_predict() const {
    if (output.json && options.output_path == "-")
      throw std::invalid_argument("with --json nothing else can go to standard output; give a file with -o");
    watch_for_interrupts();
    const PredictSummary summary = predict(options, {interrupted_by_user});
    report(summary);
    if (output.json) print_result(json(summary).dump());
    return summary.outcome == Outcome::interrupted ? interrupted : done;
  }

  [[nodiscard]] int run_evaluate() const {
    watch_for_interrupts();
    const EvaluateSummary summary = evaluate(options, {interrupted_by_user});
    report(summary);
    if (!summary.metrics && !output.quiet) print_message("interrupted; metrics need all rows, so there are none\n");
    if (output.json) {
      nlohmann::ordered_json fields = json(summary);
      if (summary.metrics) fields["metrics"] = json_of(*summary.metrics);
      print_result(fields.dump());
    } else if (summary.metrics) {
      print_result(sentence_of(*summary.metrics));
    }
    return summary.outcome == Outcome::interrupted ? interrupted : done;
  }
};

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("predict", "Write a prediction for each row, in order");
  auto command = std::make_shared<Predict>();
  command->add_to(*verb, "Rows to predict: files, or - for standard input; csv, tsv and npy need no target");
  verb->add_option("-o,--output", command->options.output_path, "Default: standard output")->type_name("FILE");
  verb->add_flag("--std", command->options.deviations,
                 "Add a comma and the standard deviation of the target, noise included; classes: that of the "
                 "probability");
  verb->add_flag("--labels", command->options.labels,
                 "Classes: the label instead of the probability of the positive class; control and format characters "
                 "are written as \\n, \\r, \\t, \\uXXXX or \\UXXXXXXXX, a backslash as \\\\");
  verb->callback([&action, command] { action = [command] { return command->run_predict(); }; });
}

void add_evaluate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("evaluate", "Measure a model on rows with targets");
  auto command = std::make_shared<Predict>();
  command->add_to(*verb, "Rows with targets: files, or - for standard input");
  verb->callback([&action, command] { action = [command] { return command->run_evaluate(); }; });
}

}  // namespace dyad::cli
