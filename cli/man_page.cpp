#include <algorithm>
#include <string_view>

#include <dyad/version.h>

#include "command.h"
#include "exit_code.h"
#include "option_table.h"

namespace dyad::cli {
namespace {

/// Escapes plain text for roff.
std::string escape_roff(std::string_view text) {
  std::string roff;
  for (const char letter : text) {
    constexpr std::string_view special = "\\-'^~`\"";
    constexpr std::string_view escapes[] = {"\\e", "\\-", "\\(aq", "\\(ha", "\\(ti", "\\(ga", "\\(dq"};
    const std::size_t position = special.find(letter);
    roff += position == std::string_view::npos ? std::string(1, letter) : std::string(escapes[position]);
  }
  return roff;
}

/// Wraps text into source lines. A line that would begin with a period, as roff requests do, gets a \\& prefix.
std::string paragraph(std::string_view text) {
  constexpr std::size_t max_line_width = 78;  // of the roff source; the formatter fills lines again
  std::string lines;
  std::size_t column = 0;
  for (const std::string& word : CLI::detail::split(std::string(text), ' ')) {
    const std::string roff = escape_roff(word);
    if (column > 0 && column + 1 + roff.size() > max_line_width) {
      lines += '\n';
      column = 0;
    } else if (column > 0) {
      lines += ' ';
      ++column;
    }
    if (column == 0 && roff.starts_with('.')) lines += "\\&";
    lines += roff;
    column += roff.size();
  }
  return lines + '\n';
}

std::string bold(const std::string& text) { return "\\fB" + escape_roff(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escape_roff(text) + "\\fR"; }

std::string entry(const std::string& term, std::string_view text) { return ".TP\n" + term + '\n' + paragraph(text); }

std::string synopsis(const CLI::App& subcommand) {
  std::string line = bold("dyad " + subcommand.get_name());
  for (const CLI::Option* option : options_of(subcommand))
    if (option->get_required())
      line += ' ' + bold(spellings_of(*option).front()) + ' ' + italic(option->get_type_name());
  line += " [" + italic("OPTIONS") + "]";
  for (const CLI::Option* option : positionals_of(subcommand)) {
    line += ' ' + italic(option->get_name());
    if (option->get_items_expected_max() > 1) line += " ...";
  }
  return line + '\n';
}

std::string term(const CLI::Option& option) {
  if (option.get_positional()) {
    const std::vector<std::string> choices = choices_of(option);
    return italic(option.get_name()) + (choices.empty() ? "" : " (" + bold(option.get_type_name()) + ")");
  }
  std::vector<std::string> names;
  for (const std::string& name : spellings_of(option)) names.push_back(bold(name));
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (takes_value(option))
    text += ' ' + (choices_of(option).empty() ? italic(option.get_type_name()) : bold(option.get_type_name()));
  return text + (option.get_required() ? " (required)" : "");
}

std::string section(const CLI::App& subcommand) {
  std::string text =
      fmt::format(".SS dyad {}\n{}", subcommand.get_name(), paragraph(subcommand.get_description() + "."));
  for (const CLI::Option* option : positionals_of(subcommand)) text += entry(term(*option), option->get_description());
  for (const CLI::Option* option : options_of(subcommand)) text += entry(term(*option), option->get_description());
  return text;
}

std::string environment() {
  return ".SH ENVIRONMENT\n" +
         entry(bold("DYAD_") + italic("OPTION"),
               "Value of --option if the command line does not set it: DYAD_RANK=16 for --rank, "
               "DYAD_CHECKPOINT_EVERY for --checkpoint-every, DYAD_QUIET=1 for --quiet. Empty variables are ignored.") +
         entry(bold("DYAD_CONFIG"), "Default of --config.") +
         entry(bold("NO_COLOR"), "If not empty, messages on a terminal are not colored.") +
         entry(bold("TMPDIR"), "Folder for rows that train caches on disk; default: the folder of the model.");
}

std::string files() {
  return ".SH FILES\n" +
         paragraph(
             "A config file (--config or DYAD_CONFIG) has lines NAME = VALUE, where NAME is the long name of an option "
             "without dashes. A # at the start of a line or after a space begins a comment. Values with spaces are "
             "quoted, lists are written in [ ] on one line, and flags are true or false. The values \"\" and [] "
             "leave the option unset. Entries before the first section apply to all commands that have the option; "
             "entries below [train] apply to train. The command line overrides the environment, which overrides the "
             "config file. --print-config prints the resulting settings and the origin of each.") +
         ".PP\n.EX\nthreads = 2\nquiet = true\n\n[train]\nrank = 16\ncategorical = [\"user\", \"film\"]\n.EE\n";
}

std::string exit_status() {
  return ".SH EXIT STATUS\n" + entry(bold("0"), "Success.") +
         entry(bold("1"), "Runtime failure: a missing file, a full disk, a --tolerance that was not reached.") +
         entry(bold("2"), "Invalid arguments.") + entry(bold("3"), "Invalid data or model file.") +
         entry(
             bold("130"),
             "Interrupted. train has saved the model of all complete blocks of rows, if any; an incomplete block of up "
             "to 4,096 rows is discarded.");
}

std::string examples() {
  constexpr const char* commands[] = {
      "dyad train houses.csv --target price -m houses.dyad",
      "dyad evaluate -m houses.dyad new-houses.csv",
      "dyad predict --std -m houses.dyad new-houses.csv -o prices.csv",
      "dyad inspect houses.dyad --top 5",
      "producer | dyad train - --format csv --target y -m model.dyad --checkpoint-every 1000000",
      "dyad recover gfm --dim 200 --rank 3",
  };
  std::string text = ".SH EXAMPLES\n.EX\n";
  for (const char* command : commands) text += escape_roff(command) + '\n';
  return text + ".EE\n";
}

/// The manual page in roff, generated from the options of the parser.
std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(".TH DYAD 1 {} \"dyad {}\" \"User Commands\"\n", DYAD_DATE, DYAD_VERSION);
  text +=
      ".SH NAME\ndyad \\- second\\-order models with low\\-rank interactions, trained in one or more passes\n.SH "
      "SYNOPSIS\n";
  for (const CLI::App* subcommand : subcommands_of(app))
    text += (subcommand == subcommands_of(app).front() ? "" : ".br\n") + synopsis(*subcommand);
  text +=
      ".SH DESCRIPTION\n" + paragraph(app.get_description() + ".") +
      paragraph(
          "M is symmetric, of low rank, with eigenvalues of any sign. Hyperparameters are selected automatically. Rows "
          "from files are cached and used in further passes while the loss of held-out rows decreases. Results are "
          "written to standard output, progress and messages to standard error.") +
      ".SH COMMANDS\n";
  for (const CLI::App* subcommand : subcommands_of(app)) text += section(*subcommand);
  text += environment() + files() + exit_status() + examples();
  text.pop_back();
  return text;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  CLI::App* subcommand = app.add_subcommand("man", "Print the manual page; use as dyad man | man -l -");
  subcommand->callback([&action, &app] {
    action = [&app] {
      print_result(man_page(app));
      return success;
    };
  });
}

}  // namespace dyad::cli
