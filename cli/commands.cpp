#include "commands.h"

#include <algorithm>
#include <memory>
#include <new>
#include <stdexcept>

#include <dyad/error.h>
#include <dyad/version.h>

#include "exit_code.h"
#include "option_table.h"
#include "settings.h"
#include "suggestion.h"

namespace dyad::cli {
namespace {

/// Parser with the action of the selected subcommand. CLI::App can be neither copied nor moved, and actions refer to
/// it.
struct CommandLine {
  CLI::App app{"Second-order models y = b + w'x + x'Mx with low-rank M, trained in one or more passes over the data",
               "dyad"};
  Action action;

  CommandLine() { add_commands(app, action); }
};

/// Makes required options and the subcommand optional during the parse. The environment and the config file may provide
/// required options, and a more specific error is reported if the subcommand is missing.
class DeferredRequirements {
 public:
  explicit DeferredRequirements(CLI::App& app) : app_(app) {
    app.require_subcommand(0, 1);
    for (CLI::App* subcommand : app.get_subcommands({}))
      for (CLI::Option* option : subcommand->get_options())
        if (option->get_required()) required_.push_back(option->required(false));
  }
  ~DeferredRequirements() {
    app_.require_subcommand(1);
    for (CLI::Option* option : required_) option->required();
  }
  DeferredRequirements(const DeferredRequirements&) = delete;
  DeferredRequirements& operator=(const DeferredRequirements&) = delete;

 private:
  CLI::App& app_;
  std::vector<CLI::Option*> required_;
};

std::string help_command(const CLI::App& subcommand) {
  return subcommand.get_name() == "dyad" ? "dyad --help" : fmt::format("dyad {} --help", subcommand.get_name());
}

[[noreturn]] void throw_usage_error(const CLI::App& subcommand, const std::string& message) {
  throw std::invalid_argument(fmt::format("{}\nSee {}.", message, help_command(subcommand)));
}

/// Checks that the first argument is a subcommand or an option.
void check_subcommand(const CLI::App& app, const std::string& first) {
  const std::vector<std::string> names = subcommand_names(app);
  if (first.empty()) throw_usage_error(app, fmt::format("a command is required: {}", fmt::join(names, ", ")));
  if (first.starts_with("-") || std::find(names.begin(), names.end(), first) != names.end()) return;
  const std::string suggestion = did_you_mean(first, names);
  if (suggestion.empty())
    throw_usage_error(app, fmt::format("unknown command '{}'; expected one of {}", first, fmt::join(names, ", ")));
  throw std::invalid_argument(fmt::format("unknown command '{}'{}", first, suggestion));
}

/// Reports an argument that the parser could not assign.
[[noreturn]] void throw_unknown_argument(const CLI::App& subcommand, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  if (!name.starts_with("-")) throw_usage_error(subcommand, fmt::format("unexpected argument '{}'", argument));
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(subcommand)) names.push_back("--" + name_of(*option));
  const std::string suggestion = did_you_mean(name, names);
  throw std::invalid_argument(
      fmt::format("unknown option {}{}", name, suggestion.empty() ? "; see " + help_command(subcommand) : suggestion));
}

/// Rejects "--name=", for which CLI11 would take the next argument as the value.
void check_values(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return;
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size())
      throw std::invalid_argument(fmt::format("{} requires a value after the =", argument));
  }
}

/// Reports a repeated option by name. CLI11 reports the number of values instead.
[[noreturn]] void throw_argument_mismatch(const CLI::App& subcommand, const CLI::ArgumentMismatch& error) {
  for (const CLI::Option* option : options_of(subcommand))
    if (option->get_items_expected_max() == 1 && option->count() > 1)
      throw_usage_error(subcommand, fmt::format("{} is given more than once", option->get_name()));
  throw_usage_error(subcommand, error.what());
}

/// The parsed subcommand, or the app itself if there is none.
CLI::App& selected_subcommand(CLI::App& app) {
  const std::vector<CLI::App*> selected = app.get_subcommands();
  return selected.empty() ? app : *selected.front();
}

Action print_action(const std::string& text) {
  return [text] {
    print_result(text);
    return success;
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
  for (CLI::App* subcommand : app.get_subcommands({})) add_settings(*subcommand);
  add_man(app, action);
  add_completion(app, action);
  app.set_version_flag("--version", DYAD_VERSION);
  for (CLI::App* subcommand : app.get_subcommands({})) subcommand->set_version_flag("--version", DYAD_VERSION);
}

Action parse_command(const std::vector<std::string>& arguments) {
  const auto line = std::make_shared<CommandLine>();
  CLI::App& app = line->app;
  check_subcommand(app, arguments.empty() ? "" : arguments.front());
  try {
    const DeferredRequirements deferred(app);
    check_values(arguments);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion& version) {
    return print_action(version.what());
  } catch (const CLI::Success&) {
    std::string help = app.help();
    help.erase(help.find_last_not_of('\n') + 1);
    return print_action(help);
  } catch (const CLI::ExtrasError&) {
    const CLI::App& subcommand = app.remaining().empty() ? selected_subcommand(app) : app;
    throw_unknown_argument(subcommand, subcommand.remaining().front());
  } catch (const CLI::ArgumentMismatch& error) {
    throw_argument_mismatch(selected_subcommand(app), error);
  } catch (const CLI::ParseError& error) {
    throw_usage_error(selected_subcommand(app), error.what());
  }
  CLI::App& subcommand = selected_subcommand(app);
  if (&subcommand == &app) check_subcommand(app, "");
  const OptionOrigins origins = apply_settings(app, subcommand);
  if (is_config_requested(subcommand)) return print_action(config_text(subcommand, origins));
  for (const CLI::Option* option : subcommand.get_options())
    if (option->get_required() && option->count() == 0)
      throw_usage_error(subcommand, option->get_name() + " is required");
  return [line, &subcommand, origins] {
    try {
      return line->action();
    } catch (const std::invalid_argument& error) {
      const std::string message = with_option_names(error.what(), &subcommand);
      throw std::invalid_argument(message + describe_origins(message, subcommand, origins));
    }
  };
}

int run_command(int argc, const char* const* argv) {
  const auto report = [](const std::string& message, ExitCode code) {
    print_labeled(Style::red, "dyad:", message);
    return code;
  };
  try {
    const Action action = parse_command(std::vector<std::string>(argv + 1, argv + argc));
    ignore_file_size_signal();
    return action();
  } catch (const DataError& error) {
    return report(with_option_names(error.what()), data_error);
  } catch (const std::invalid_argument& error) {
    return report(error.what(), usage_error);
  } catch (const std::bad_alloc&) {
    return report("out of memory; reduce the number of features or the rank", runtime_failure);
  } catch (const std::exception& error) {
    return report(with_option_names(error.what()), runtime_failure);
  }
}

}  // namespace dyad::cli
