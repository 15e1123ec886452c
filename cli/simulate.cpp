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

struct Simulate {
  SimulateOptions options;
  Output output;
  PlantedArguments planted;
  CLI::Option* format = nullptr;

  void add_to(CLI::App& verb);
  void complete();
  int run();

 private:
  void print_progress(const SimulateSummary& summary);
  Index next_line_ = 1;
};

void Simulate::add_to(CLI::App& verb) {
  planted.add_to(verb, options.problem);
  add_number(verb, "--rows", options.rows, "N", "Rows to write")->required();
  verb.add_option("-o,--output", options.path, "File to write, or - for standard output")
      ->required()
      ->type_name("FILE");
  format = add_choice(verb, "--format", options.format, formats,
                      "Default: by the name (.svm .libsvm .csv .tsv .npy), libsvm for standard output");
  verb.add_option("--target-file", options.target_path, "npy: file for the targets; default: NAME.target.npy")
      ->type_name("FILE");
  verb.add_option("--truth", options.truth_path, "Write the planted model to this file")->type_name("MODEL");
  add_number(verb, "--threads", options.threads, "T", "Default: all cores; the bytes are the same for any number");
  output.add_to(verb);
}

void Simulate::complete() {
  planted.complete(options.problem);
  const auto ends_with = [&](const std::string& end) { return options.path.ends_with(end); };
  if (format->count() == 0 && options.path != "-") {
    const Choices<Format> endings{{".svm", Format::libsvm},
                                  {".libsvm", Format::libsvm},
                                  {".csv", Format::csv},
                                  {".tsv", Format::tsv},
                                  {".npy", Format::npy}};
    const auto found =
        std::find_if(endings.begin(), endings.end(), [&](const auto& pair) { return ends_with(pair.first); });
    if (found == endings.end())
      throw std::invalid_argument(
          fmt::format("the name '{}' does not end in .svm, .libsvm, .csv, .tsv or .npy; give the format with --format",
                      options.path));
    options.format = found->second;
  }
  if (options.format == Format::npy && options.target_path.empty()) {
    if (options.path == "-") throw std::invalid_argument("npy on standard output needs --target-file for the targets");
    options.target_path = options.path.substr(0, options.path.size() - (ends_with(".npy") ? 4 : 0)) + ".target.npy";
  }
  if (output.json && (options.path == "-" || options.target_path == "-" || options.truth_path == "-"))
    throw std::invalid_argument("with --json nothing else can go to standard output; give files");
  options.validate();
}

/// A line at 1, 2, 4, 8, ... blocks: few lines for any number of rows.
void Simulate::print_progress(const SimulateSummary& summary) {
  if (summary.rows < next_line_ && summary.rows < options.rows) return;
  next_line_ = 2 * summary.rows;
  print_message("{:>12} rows {:>9.1f} MB {:>8.1f} MB/s\n", summary.rows, static_cast<double>(summary.bytes) / 1e6,
                static_cast<double>(summary.bytes) / 1e6 / summary.seconds);
}

int Simulate::run() {
  watch_for_interrupts();
  complete();
  SimulateHooks hooks;
  hooks.interrupted = interrupted_by_user;
  if (!output.quiet) hooks.progress = [this](const SimulateSummary& summary) { print_progress(summary); };
  const SimulateSummary summary = simulate(options, hooks);
  const bool stopped = summary.outcome == Outcome::interrupted;
  if (stopped && !output.quiet)
    print_message("interrupted{}\n", options.path == "-" ? "" : "; " + options.path + " is as it was before");
  if (output.json) {
    nlohmann::ordered_json fields = json_of_run(summary);
    fields["bytes"] = summary.bytes;
    print_result(fields.dump());
  }
  return stopped ? interrupted : done;
}

}  // namespace

void add_simulate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("simulate", "Write the rows of a planted problem to a file");
  auto command = std::make_shared<Simulate>();
  command->add_to(*verb);
  verb->callback([&action, command] { action = [command] { return command->run(); }; });
}

}  // namespace dyad::cli
