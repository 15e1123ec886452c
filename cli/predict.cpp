#include <dyad/evaluate.h>

#include <memory>

#include "command.h"
#include "data_arguments.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

/// Implements both predict and evaluate, which have the same inputs.
struct Predict {
  PredictOptions options;
  OutputFlags output;

  void add_to(CLI::App& subcommand, const char* data_description) {
    add_data(subcommand, options.data, data_description);
    subcommand.add_option("-m,--model", options.model_path, "Model file")->required()->type_name("MODEL");
    add_number(subcommand, "--threads", options.threads, "T", "Number of threads; default: all cores");
    output.add_to(subcommand);
  }

  [[nodiscard]] static nlohmann::ordered_json json(const PredictSummary& summary) {
    nlohmann::ordered_json fields = run_json(summary);
    fields["unknown_cells"] = summary.unknown_cells;
    if (!summary.classes.empty()) fields["classes"] = summary.classes;
    return fields;
  }

  void report(const PredictSummary& summary) const {
    if (output.quiet) return;
    print_message("{} rows in {:.2f} s ({} rows/s)\n", summary.rows, summary.seconds,
                  format_count(static_cast<double>(summary.rows) / summary.seconds));
    if (summary.unknown_cells > 0)
      print_message(
          "{} cells have a category or index that is not in the model; they have the mean parameters of their "
          "column, or 0\n",
          summary.unknown_cells);
    for (const std::string& warning : summary.warnings) print_warning(with_option_names(warning));
  }

  [[nodiscard]] int run_predict() const {
    if (output.json && options.output_path == "-")
      throw std::invalid_argument(
          "--json requires an output file: predictions and JSON cannot both be written to standard output; use -o "
          "FILE");
    install_interrupt_handlers();
    const PredictSummary summary = predict(options, {is_interrupted});
    report(summary);
    if (!output.quiet && !options.labels && !summary.classes.empty()) {
      std::vector<std::string> labels;
      for (const std::string& label : summary.classes) labels.push_back(escape_unprintable(label));
      print_message("each line contains the probabilities of {}{}\n", fmt::join(labels, ", "),
                    options.deviations ? ", and then their standard deviations" : "");
    }
    if (output.json) print_result(json(summary).dump());
    return summary.outcome == Outcome::interrupted ? interrupted : success;
  }

  [[nodiscard]] int run_evaluate() const {
    install_interrupt_handlers();
    const EvaluateSummary summary = evaluate(options, {is_interrupted});
    report(summary);
    if (!summary.metrics && !output.quiet) print_message("interrupted; no metrics, because they require all rows\n");
    if (output.json) {
      nlohmann::ordered_json fields = json(summary);
      if (summary.metrics) fields["metrics"] = metrics_json(*summary.metrics);
      print_result(fields.dump());
    } else if (summary.metrics) {
      print_result(format_metrics(*summary.metrics));
    }
    return summary.outcome == Outcome::interrupted ? interrupted : success;
  }
};

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand(
      "predict",
      "Predict the target of each row: a number, the probability of the positive class, or the probabilities of more "
      "than two classes, separated by commas, in the order that inspect prints");
  auto command = std::make_shared<Predict>();
  command->add_to(*subcommand, "Files of rows, or - for standard input; csv, tsv and npy do not need a target");
  subcommand->add_option("-o,--output", command->options.output_path, "Output file; default: standard output")
      ->type_name("FILE");
  subcommand->add_flag(
      "--std", command->options.deviations,
      "Append a comma and the predictive standard deviation, including noise; classes: that of the probability; more "
      "than two classes: one for each probability");
  subcommand->add_flag("--labels", command->options.labels,
                       "Classes: write the label instead of the probability of the positive class, or of the "
                       "probabilities of more than two classes; control and format "
                       "characters are escaped as \\n, \\r, \\t, \\uXXXX or \\UXXXXXXXX, a backslash as \\\\");
  subcommand->callback([&action, command] { action = [command] { return command->run_predict(); }; });
}

void add_evaluate(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand("evaluate", "Compute the metrics of a model on rows with targets");
  auto command = std::make_shared<Predict>();
  command->add_to(*subcommand, "Files of rows with targets, or - for standard input");
  subcommand->callback([&action, command] { action = [command] { return command->run_evaluate(); }; });
}

}  // namespace dyad::cli
