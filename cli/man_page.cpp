#include <algorithm>
#include <string_view>

#include <dyad/version.h>

#include "command.h"
#include "exit_code.h"
#include "option_table.h"

namespace dyad::cli {
namespace {

/// Plain text as roff shows it unchanged.
std::string escaped(std::string_view text) {
  std::string roff;
  for (const char letter : text) {
    constexpr std::string_view special = "\\-'^~`\"";
    constexpr std::string_view names[] = {"\\e", "\\-", "\\(aq", "\\(ha", "\\(ti", "\\(ga", "\\(dq"};
    const std::size_t place = special.find(letter);
    roff += place == std::string_view::npos ? std::string(1, letter) : std::string(names[place]);
  }
  return roff;
}

/// Lines that an editor shows; roff fills them anew. None may begin like a request.
std::string paragraph(std::string_view text) {
  constexpr std::size_t width = 78;
  std::string lines;
  std::size_t column = 0;
  for (const std::string& word : CLI::detail::split(std::string(text), ' ')) {
    const std::string roff = escaped(word);
    if (column > 0 && column + 1 + roff.size() > width) {
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

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string entry(const std::string& term, std::string_view text) { return ".TP\n" + term + '\n' + paragraph(text); }

std::string synopsis(const CLI::App& verb) {
  std::string line = bold("dyad " + verb.get_name());
  for (const CLI::Option* option : options_of(verb))
    if (option->get_required())
      line += ' ' + bold(spellings_of(*option).front()) + ' ' + italic(option->get_type_name());
  line += " [" + italic("OPTIONS") + "]";
  for (const CLI::Option* option : positionals_of(verb)) {
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

std::string section(const CLI::App& verb) {
  std::string text = fmt::format(".SS dyad {}\n{}", verb.get_name(), paragraph(verb.get_description() + "."));
  for (const CLI::Option* option : positionals_of(verb)) text += entry(term(*option), option->get_description());
  for (const CLI::Option* option : options_of(verb)) text += entry(term(*option), option->get_description());
  return text;
}

std::string environment() {
  return ".SH ENVIRONMENT\n" +
         entry(
             bold("DYAD_") + italic("OPTION"),
             "The value of --option, unless the command line gives it: DYAD_RANK=16 for --rank, "
             "DYAD_CHECKPOINT_EVERY for --checkpoint-every, DYAD_QUIET=1 for --quiet. An empty variable is as none.") +
         entry(bold("DYAD_CONFIG"), "The file for --config.") +
         entry(bold("NO_COLOR"), "If it is not empty, messages on a terminal have no colour.") +
         entry(bold("TMPDIR"), "The folder for rows that train keeps on disk; default: that of the model.");
}

std::string files() {
  return ".SH FILES\n" +
         paragraph(
             "A config file, as --config or DYAD_CONFIG names it, has lines NAME = VALUE, with the long names of "
             "options without the dashes. Text behind # is a comment where # begins the line or follows a blank. A "
             "value with blanks stands in quotes, a list in [ ] on one line, and flags are true or false; \"\" and [] "
             "are as no value at all. Names at the top go to every verb that has them, those below [train] to train "
             "alone. The environment goes before the config file, and the command line before both; "
             "--print-config shows what is in force and why.") +
         ".PP\n.EX\nthreads = 2\nquiet = true\n\n[train]\nrank = 16\ncategorical = [\"user\", \"film\"]\n.EE\n";
}

std::string exit_status() {
  return ".SH EXIT STATUS\n" + entry(bold("0"), "Done.") +
         entry(bold("1"),
               "Failed while running: a file that is not there, a full disk, a --tolerance that was not reached.") +
         entry(bold("2"), "Wrong usage.") + entry(bold("3"), "Bad data, or a model that cannot be read.") +
         entry(bold("130"),
               "Interrupted; train has saved what it learned, if anything: rows of a block that is not complete yet, "
               "up to 4,096, are not learned.");
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
  for (const char* command : commands) text += escaped(command) + '\n';
  return text + ".EE\n";
}

/// The manual in roff, from the same options as --help.
std::string man_page(const CLI::App& app) {
  std::string text = fmt::format(".TH DYAD 1 {} \"dyad {}\" \"User Commands\"\n", DYAD_DATE, DYAD_VERSION);
  text += ".SH NAME\ndyad \\- learn second\\-order models from data that streams by once\n.SH SYNOPSIS\n";
  for (const CLI::App* verb : verbs_of(app)) text += (verb == verbs_of(app).front() ? "" : ".br\n") + synopsis(*verb);
  text +=
      ".SH DESCRIPTION\n" + paragraph(app.get_description()) +
      paragraph(
          "M is symmetric, of low rank and of any sign. Nothing is to be tuned, and rows of files are read again as "
          "long as held-out rows get better. Results go to standard output, progress and messages to standard "
          "error.") +
      ".SH VERBS\n";
  for (const CLI::App* verb : verbs_of(app)) text += section(*verb);
  text += environment() + files() + exit_status() + examples();
  text.pop_back();
  return text;
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("man", "Print the manual: dyad man | man -l -");
  verb->callback([&action, &app] {
    action = [&app] {
      print_result(man_page(app));
      return done;
    };
  });
}

}  // namespace dyad::cli
