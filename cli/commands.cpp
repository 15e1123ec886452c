#include "commands.h"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/version.h>

#include "exit_code.h"
#include "option_table.h"
#include "settings.h"
#include "suggestion.h"

namespace dyad::cli {
namespace {

/// An App is neither copied nor moved, and what its verbs do refers to it.
struct CommandLine {
  CLI::App app{"dyad learns second-order models, y = b + w'x + x'Mx, from data that streams by once.", "dyad"};
  Action action;

  CommandLine() { add_commands(app, action); }
};

/// Options that are required may still come from the environment or the config file, so CLI11 must let them pass; and
/// where the verb is missing, what is there instead tells more.
class RequirementsLater {
 public:
  explicit RequirementsLater(CLI::App& app) : app_(app) {
    app.require_subcommand(0, 1);
    for (CLI::App* verb : app.get_subcommands({}))
      for (CLI::Option* option : verb->get_options())
        if (option->get_required()) required_.push_back(option->required(false));
  }
  ~RequirementsLater() {
    app_.require_subcommand(1);
    for (CLI::Option* option : required_) option->required();
  }
  RequirementsLater(const RequirementsLater&) = delete;
  RequirementsLater& operator=(const RequirementsLater&) = delete;

 private:
  CLI::App& app_;
  std::vector<CLI::Option*> required_;
};

std::string help_command(const CLI::App& verb) {
  return verb.get_name() == "dyad" ? "dyad --help" : fmt::format("dyad {} --help", verb.get_name());
}

[[noreturn]] void wrong(const CLI::App& verb, const std::string& message) {
  throw std::invalid_argument(fmt::format("{}\nRun {} to see what is allowed.", message, help_command(verb)));
}

/// What stands where the verb should be.
void check_verb(const CLI::App& app, const std::string& first) {
  const std::vector<std::string> names = verb_names(app);
  if (first.empty()) wrong(app, fmt::format("a verb is required: {}", fmt::join(names, ", ")));
  if (first.starts_with("-") || std::find(names.begin(), names.end(), first) != names.end()) return;
  const std::string suggestion = did_you_mean(first, names);
  if (suggestion.empty())
    wrong(app, fmt::format("'{}' is not a verb; the verbs are {}", first, fmt::join(names, ", ")));
  throw std::invalid_argument(fmt::format("'{}' is not a verb{}", first, suggestion));
}

/// What `verb` could not make anything of.
[[noreturn]] void refuse(const CLI::App& verb, const std::string& given) {
  const std::string name = given.substr(0, given.find('='));
  if (!name.starts_with("-")) wrong(verb, fmt::format("'{}' is one argument too many for {}", given, verb.get_name()));
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(verb)) names.push_back("--" + name_of(*option));
  const std::string suggestion = did_you_mean(name, names);
  throw std::invalid_argument(fmt::format("{} is not an option of {}{}", name, verb.get_name(),
                                          suggestion.empty() ? "; see " + help_command(verb) : suggestion));
}

/// CLI11 would take the next argument for the value.
void check_values(const std::vector<std::string>& arguments) {
  for (const std::string& given : arguments) {
    if (given == "--") return;
    if (given.starts_with("--") && given.find('=') + 1 == given.size())
      throw std::invalid_argument(fmt::format("{} has no value behind the =; give one, or leave it out", given));
  }
}

/// Of CLI11's reasons to refuse the number of values, the one that can be met.
[[noreturn]] void refuse_number(const CLI::App& verb, const CLI::ArgumentMismatch& error) {
  for (const CLI::Option* option : options_of(verb))
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      wrong(verb, fmt::format("{} is given twice", option->get_name()));
  wrong(verb, error.what());
}

/// The verb in force, once the arguments are read, or the app itself.
CLI::App& chosen(CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  return verbs.empty() ? app : *verbs.front();
}

Action print(const std::string& text) {
  return [text] {
    print_result(text);
    return done;
  };
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  app.require_subcommand(1);
  add_train(app, action);
  add_predict(app, action);
  add_evaluate(app, action);
  add_inspect(app, action);
  add_recover(app, action);
  add_simulate(app, action);
  for (CLI::App* verb : app.get_subcommands({})) add_settings(*verb);
  add_man(app, action);
  add_completion(app, action);
  app.set_version_flag("--version", DYAD_VERSION);
  for (CLI::App* verb : app.get_subcommands({})) verb->set_version_flag("--version", DYAD_VERSION);
}

Action parse_command(const std::vector<std::string>& arguments) {
  const auto line = std::make_shared<CommandLine>();
  CLI::App& app = line->app;
  check_verb(app, arguments.empty() ? "" : arguments.front());
  try {
    const RequirementsLater later(app);
    check_values(arguments);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion& version) {
    return print(version.what());
  } catch (const CLI::Success&) {
    std::string help = app.help();
    help.erase(help.find_last_not_of('\n') + 1);
    return print(help);
  } catch (const CLI::ExtrasError&) {
    const CLI::App& verb = app.remaining().empty() ? chosen(app) : app;
    refuse(verb, verb.remaining().front());
  } catch (const CLI::ArgumentMismatch& error) {
    refuse_number(chosen(app), error);
  } catch (const CLI::ParseError& error) {
    wrong(chosen(app), error.what());
  }
  CLI::App& verb = chosen(app);
  if (&verb == &app) check_verb(app, "");
  const Origins origins = apply_settings(app, verb);
  if (wants_config_printed(verb)) return print(config_text(verb, origins));
  for (const CLI::Option* option : verb.get_options())
    if (option->get_required() && option->count() == 0) wrong(verb, option->get_name() + " is required");
  return [line, &verb, origins] {
    try {
      return line->action();
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(error.what() + origins_behind(error.what(), verb, origins));
    }
  };
}

int run_command(int argc, const char* const* argv) {
  const auto report = [](const std::string& message, ExitCode code) {
    print_marked(Style::red, "dyad:", message);
    return code;
  };
  try {
    const Action action = parse_command(std::vector<std::string>(argv + 1, argv + argc));
    survive_size_limits();
    return action();
  } catch (const DataError& error) {
    return report(error.what(), bad_data);
  } catch (const std::invalid_argument& error) {
    return report(error.what(), wrong_usage);
  } catch (const std::bad_alloc&) {
    return report("out of memory; a smaller dim or rank needs less", failed);
  } catch (const std::exception& error) {
    return report(error.what(), failed);
  }
}

}  // namespace dyad::cli
