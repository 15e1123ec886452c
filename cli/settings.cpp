#include "settings.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include "config_file.h"
#include "option_table.h"
#include "suggestion.h"

namespace dyad::cli {
namespace {

/// Value of an option from the environment or the config file.
struct Setting {
  std::string value;     ///< as on the command line
  std::string location;  ///< for errors: "DYAD_RANK" or "dyad.toml, line 3: rank"
  std::string origin;    ///< for --print-config; see OptionOrigins
};

/// Long names of the options that the environment and the config file can set.
std::vector<std::string> setting_names(const CLI::App& subcommand) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(subcommand))
    if (option->get_configurable()) names.push_back(name_of(*option));
  return names;
}

/// Name of the environment variable of an option: DYAD_CHECKPOINT_EVERY for checkpoint-every.
std::string variable_name(const std::string& name) {
  std::string variable = "DYAD_";
  for (const char letter : name)
    variable += letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return variable;
}

/// Value of an environment variable. Empty variables count as unset.
std::optional<std::string> environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

/// Checks that each entry names an option of the subcommand of its section. An entry before the first section may name
/// an option of any subcommand.
void check_names(const CLI::App& app, const std::vector<ConfigEntry>& entries) {
  std::map<std::string, std::vector<std::string>> names;
  std::vector<std::string> sections;
  for (const CLI::App* subcommand : subcommands_of(app)) {
    const std::vector<std::string> settings = setting_names(*subcommand);
    if (settings.empty()) continue;
    sections.push_back(subcommand->get_name());
    names[subcommand->get_name()] = settings;
    names[""].insert(names[""].end(), settings.begin(), settings.end());
  }
  for (const ConfigEntry& entry : entries) {
    if (!names.contains(entry.section))
      throw std::invalid_argument(fmt::format("{}: unknown section [{}]{}", entry.location, entry.section,
                                              did_you_mean(entry.section, sections)));
    const std::vector<std::string>& allowed = names[entry.section];
    if (std::find(allowed.begin(), allowed.end(), entry.name) == allowed.end())
      throw std::invalid_argument(fmt::format("{}: '{}' is not an option of {}{}", entry.location, entry.name,
                                              entry.section.empty() ? "any command" : entry.section,
                                              did_you_mean(entry.name, allowed)));
  }
}

/// Path of the config file from --config or DYAD_CONFIG.
std::optional<std::string> config_path(const CLI::App& subcommand) {
  const CLI::Option* option = subcommand.get_option("--config");
  return option->count() > 0 ? option->as<std::string>() : environment("DYAD_CONFIG");
}

/// Entries of the config file for this subcommand. Its section overrides entries before the first section.
std::map<std::string, Setting> read_config(const CLI::App& app, const CLI::App& subcommand) {
  const std::optional<std::string> path = config_path(subcommand);
  std::map<std::string, Setting> settings;
  if (!path) return settings;
  const std::vector<ConfigEntry> entries = read_config_file(*path);
  check_names(app, entries);
  for (const ConfigEntry& entry : entries) {
    if (entry.section != subcommand.get_name() && (!entry.section.empty() || settings.contains(entry.name))) continue;
    settings[entry.name] = {entry.value, entry.location + ": " + entry.name, "config " + entry.location};
  }
  return settings;
}

/// True if the value of the option is a file to write.
bool is_output_file(const CLI::App& subcommand, const CLI::Option& option) {
  const std::string name = name_of(option);
  return name == "output" || name == "truth" || name == "export" ||
         (name == "model" && subcommand.get_name() == "train") ||
         (name == "target-file" && subcommand.get_name() == "simulate");
}

/// Throws std::invalid_argument if an output file is the config file.
void require_config_not_overwritten(const CLI::App& subcommand) {
  const std::optional<std::string> config = config_path(subcommand);
  if (!config) return;
  for (const CLI::Option* option : subcommand.get_options()) {
    std::error_code error;
    if (is_output_file(subcommand, *option) && option->count() > 0 &&
        std::filesystem::equivalent(*config, option->as<std::string>(), error))
      throw std::invalid_argument(
          fmt::format("--{} would overwrite the config file {}; choose another file", name_of(*option), *config));
  }
}

/// Replaces spellings of true and false by "true" and "false". Returns an error message for any other value.
std::string normalize_flag(std::string& value) {
  const std::string lower = CLI::detail::to_lower(value);
  for (const char* spelling : {"true", "1", "yes", "on"})
    if (lower == spelling) value = "true";
  for (const char* spelling : {"false", "0", "no", "off"})
    if (lower == spelling) value = "false";
  return value == "true" || value == "false" ? "" : fmt::format("expected true or false, got '{}'", value);
}

/// Assigns the value to the option.
void assign(CLI::Option& option, const Setting& setting) {
  try {
    option.add_result(setting.value);
    option.run_callback();
  } catch (const std::exception& error) {
    std::string message = error.what();
    const std::string name = "--" + name_of(option) + ": ";
    if (message.starts_with(name)) message.erase(0, name.size());
    throw std::invalid_argument(fmt::format("{}: {}", setting.location, message));
  }
}

/// The value of an option as text of a config file.
std::string value_text(const CLI::Option& option) {
  const std::string value = fmt::format("{}", fmt::join(option.reduced_results(), ","));
  const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return is_number || !takes_value(option) ? value : quote_value(value);
}

/// Replaces all characters except letters and digits by spaces (" hash bits " for --hash-bits), for a search by whole
/// words.
std::string separate_words(const std::string& text) {
  std::string words = " ";
  for (const char letter : text) words += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : ' ';
  return words + ' ';
}

}  // namespace

void add_settings(CLI::App& subcommand) {
  subcommand
      .add_option("--config", "Config file with lines NAME = VALUE, where NAME is a long option name without dashes")
      ->type_name("FILE")
      ->expected(1)
      ->configurable(false);
  subcommand.add_flag("--print-config")
      ->description("Print the resulting settings and their origins as a config file, and exit")
      ->configurable(false);
  for (CLI::Option* option : subcommand.get_options())
    if (!takes_value(*option) && option != subcommand.get_help_ptr())
      option->transform(CLI::Validator(normalize_flag, ""));
}

bool is_config_requested(const CLI::App& subcommand) {
  const CLI::Option* option = subcommand.get_option_no_throw("--print-config");
  return option != nullptr && option->count() > 0 && option->as<bool>();
}

OptionOrigins apply_settings(const CLI::App& app, CLI::App& subcommand) {
  OptionOrigins origins;
  if (subcommand.get_option_no_throw("--config") == nullptr) return origins;
  const std::map<std::string, Setting> config = read_config(app, subcommand);
  for (CLI::Option* option : subcommand.get_options()) {
    const std::string name = name_of(*option);
    if (name.empty() || !option->get_configurable()) continue;
    const std::string variable = variable_name(name);
    const auto in_config = config.find(name);
    if (option->count() > 0) {
      origins[option] = "flag";
    } else if (const auto value = environment(variable)) {
      assign(*option, {*value, variable, ""});
      origins[option] = "environment " + variable;
    } else if (in_config != config.end() && !in_config->second.value.empty()) {
      assign(*option, in_config->second);
      origins[option] = in_config->second.origin;
    }
  }
  require_config_not_overwritten(subcommand);
  return origins;
}

std::string describe_origins(const std::string& message, const CLI::App& subcommand, const OptionOrigins& origins) {
  std::vector<std::string> named;
  std::vector<std::string> all;
  for (const CLI::Option* option : options_of(subcommand)) {
    const auto origin = origins.find(option);
    if (origin == origins.end() || origin->second == "flag") continue;
    const std::string name = name_of(*option);
    all.push_back(fmt::format("{} comes from {}", name, origin->second.substr(origin->second.find(' ') + 1)));
    if (separate_words(message).find(separate_words(name)) != std::string::npos) named.push_back(all.back());
  }
  return all.empty() ? "" : fmt::format(" ({})", fmt::join(named.empty() ? all : named, "; "));
}

std::string config_text(const CLI::App& subcommand, const OptionOrigins& origins) {
  std::string text =
      fmt::format("# Settings of dyad {}, for --config. Options in comments have their defaults.\n[{}]\n",
                  subcommand.get_name(), subcommand.get_name());
  for (const CLI::Option* option : options_of(subcommand)) {
    if (!option->get_configurable()) continue;
    const std::string name = name_of(*option);
    const auto origin = origins.find(option);
    if (origin != origins.end())
      text += fmt::format("{} = {}  # {}\n", name, value_text(*option), origin->second);
    else if (!takes_value(*option))
      text += fmt::format("{} = false  # default\n", name);
    else
      text += fmt::format("# {} = {}  # {}\n", name, option->get_type_name(), option->get_description());
  }
  text.pop_back();
  return text;
}

}  // namespace dyad::cli
