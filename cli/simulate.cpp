#include <dyad/simulate.h>

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "command.h"
#include "data_arguments.h"
#include "exit_code.h"
#include "planted_options.h"

namespace dyad::cli {
namespace {

/// Options and progress of simulate.
struct Simulate {
  SimulateOptions options;
  OutputFlags output;
  PlantedArguments planted;
  CLI::Option* format = nullptr;

  void add_to(CLI::App& subcommand);
  /// Sets defaults that depend on other options, and validates.
  void complete();
  int run();

 private:
  void print_progress(const SimulateSummary& summary);
  Index next_progress_rows_ = 1;  ///< row count of the next progress line
};

void Simulate::add_to(CLI::App& subcommand) {
  planted.add_to(subcommand, options.problem);
  add_number(subcommand, "--rows", options.rows, "N", "Number of rows")->required();
  subcommand.add_option("-o,--output", options.path, "Output file, or - for standard output")
      ->required()
      ->type_name("FILE");
  format = add_choice(subcommand, "--format", options.format, formats,
                      "File format; default: by extension (.svm .libsvm .csv .tsv .npy), libsvm for standard output");
  subcommand
      .add_option("--target-file", options.target_path, "npy: output file of the targets; default: NAME.target.npy")
      ->type_name("FILE");
  subcommand.add_option("--truth", options.truth_path, "Write the planted model to this file")->type_name("MODEL");
  add_number(subcommand, "--threads", options.threads, "T",
             "Number of threads; default: all cores; the output does not depend on it");
  output.add_to(subcommand);
}

void Simulate::complete() {
  planted.complete(options.problem);
  const auto ends_with = [&](const std::string& extension) { return options.path.ends_with(extension); };
  if (format->count() == 0 && options.path != "-") {
    const Choices<Format> extensions{{".svm", Format::libsvm},
                                     {".libsvm", Format::libsvm},
                                     {".csv", Format::csv},
                                     {".tsv", Format::tsv},
                                     {".npy", Format::npy}};
    const auto found =
        std::find_if(extensions.begin(), extensions.end(), [&](const auto& pair) { return ends_with(pair.first); });
    if (found == extensions.end())
      throw std::invalid_argument(fmt::format(
          "cannot infer the format of '{}' from its extension (.svm, .libsvm, .csv, .tsv, .npy); set --format",
          options.path));
    options.format = found->second;
  }
  if (options.format == Format::npy && options.target_path.empty()) {
    if (options.path == "-")
      throw std::invalid_argument("npy on standard output requires --target-file for the targets");
    options.target_path = options.path.substr(0, options.path.size() - (ends_with(".npy") ? 4 : 0)) + ".target.npy";
  }
  if (output.json && (options.path == "-" || options.target_path == "-" || options.truth_path == "-"))
    throw std::invalid_argument(
        "--json requires output files: data and JSON cannot both be written to standard output");
  options.validate();
}

/// Prints a line whenever the number of rows has doubled.
void Simulate::print_progress(const SimulateSummary& summary) {
  if (summary.rows < next_progress_rows_ && summary.rows < options.rows) return;
  next_progress_rows_ = 2 * summary.rows;
  print_message("{:>12} rows {:>9.1f} MB {:>8.1f} MB/s\n", summary.rows, static_cast<double>(summary.bytes) / 1e6,
                static_cast<double>(summary.bytes) / 1e6 / summary.seconds);
}

int Simulate::run() {
  install_interrupt_handlers();
  complete();
  SimulateHooks hooks;
  hooks.interrupted = is_interrupted;
  if (!output.quiet) hooks.progress = [this](const SimulateSummary& summary) { print_progress(summary); };
  const SimulateSummary summary = simulate(options, hooks);
  const bool is_stopped = summary.outcome == Outcome::interrupted;
  if (is_stopped && !output.quiet)
    print_message("interrupted{}\n", options.path == "-" ? "" : "; " + options.path + " is unchanged");
  if (output.json) {
    nlohmann::ordered_json fields = run_json(summary);
    fields["bytes"] = summary.bytes;
    print_result(fields.dump());
  }
  return is_stopped ? interrupted : success;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand("simulate", "Write rows of a planted model to a file");
  auto command = std::make_shared<Simulate>();
  command->add_to(*subcommand);
  subcommand->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
