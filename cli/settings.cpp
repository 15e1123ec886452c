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

/// A value from outside the command line.
struct Setting {
  std::string value;
  std::string place;   ///< for errors: "DYAD_RANK"; "dyad.toml, line 3: rank"
  std::string origin;  ///< for --print-config
};

std::vector<std::string> setting_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options_of(verb))
    if (option->get_configurable()) names.push_back(name_of(*option));
  return names;
}

/// --checkpoint-every is DYAD_CHECKPOINT_EVERY. An empty variable is none.
std::string variable_of(const std::string& name) {
  std::string variable = "DYAD_";
  for (const char letter : name)
    variable += letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return variable;
}

std::optional<std::string> environment(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

/// Every name must be one that its verb, or above all sections some verb, has.
void check_names(const CLI::App& app, const std::vector<ConfigEntry>& entries) {
  std::map<std::string, std::vector<std::string>> names;
  std::vector<std::string> sections;
  for (const CLI::App* verb : verbs_of(app)) {
    const std::vector<std::string> own = setting_names(*verb);
    if (own.empty()) continue;
    sections.push_back(verb->get_name());
    names[verb->get_name()] = own;
    names[""].insert(names[""].end(), own.begin(), own.end());
  }
  for (const ConfigEntry& entry : entries) {
    if (!names.contains(entry.section))
      throw std::invalid_argument(fmt::format("{}: [{}] is not the name of a verb with settings{}", entry.place,
                                              entry.section, did_you_mean(entry.section, sections)));
    const std::vector<std::string>& allowed = names[entry.section];
    if (std::find(allowed.begin(), allowed.end(), entry.name) == allowed.end())
      throw std::invalid_argument(fmt::format("{}: '{}' is not a setting of {}{}", entry.place, entry.name,
                                              entry.section.empty() ? "any verb" : entry.section,
                                              did_you_mean(entry.name, allowed)));
  }
}

std::optional<std::string> config_path(const CLI::App& verb) {
  const CLI::Option* given = verb.get_option("--config");
  return given->count() > 0 ? given->as<std::string>() : environment("DYAD_CONFIG");
}

/// What the config file says to this verb; its own section goes before what is said to all.
std::map<std::string, Setting> read_config(const CLI::App& app, const CLI::App& verb) {
  const std::optional<std::string> path = config_path(verb);
  std::map<std::string, Setting> settings;
  if (!path) return settings;
  const std::vector<ConfigEntry> entries = read_config_file(*path);
  check_names(app, entries);
  for (const ConfigEntry& entry : entries) {
    if (entry.section != verb.get_name() && (!entry.section.empty() || settings.contains(entry.name))) continue;
    settings[entry.name] = {entry.value, entry.place + ": " + entry.name, "config " + entry.place};
  }
  return settings;
}

/// Options that name a file to write.
bool names_output(const CLI::App& verb, const CLI::Option& option) {
  const std::string name = name_of(option);
  return name == "output" || name == "truth" || name == "export" || (name == "model" && verb.get_name() == "train") ||
         (name == "target-file" && verb.get_name() == "simulate");
}

void require_config_not_overwritten(const CLI::App& verb) {
  const std::optional<std::string> config = config_path(verb);
  if (!config) return;
  for (const CLI::Option* option : verb.get_options()) {
    std::error_code not_there;
    if (names_output(verb, *option) && option->count() > 0 &&
        std::filesystem::equivalent(*config, option->as<std::string>(), not_there))
      throw std::invalid_argument(
          fmt::format("--{} would be written over the config file {}; give another file", name_of(*option), *config));
  }
}

/// Writes true or false for the words for them; an error otherwise.
std::string read_flag(std::string& value) {
  const std::string word = CLI::detail::to_lower(value);
  for (const char* yes : {"true", "1", "yes", "on"})
    if (word == yes) value = "true";
  for (const char* no : {"false", "0", "no", "off"})
    if (word == no) value = "false";
  return value == "true" || value == "false" ? "" : fmt::format("expected true or false, got '{}'", value);
}

void give(CLI::Option& option, const Setting& setting) {
  try {
    option.add_result(setting.value);
    option.run_callback();
  } catch (const std::exception& error) {
    std::string message = error.what();
    const std::string name = "--" + name_of(option) + ": ";
    if (message.starts_with(name)) message.erase(0, name.size());
    throw std::invalid_argument(fmt::format("{}: {}", setting.place, message));
  }
}

std::string value_text(const CLI::Option& option) {
  const std::string value = fmt::format("{}", fmt::join(option.reduced_results(), ","));
  const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  return is_number || !takes_value(option) ? value : quoted(value);
}

/// " hash bits " for --hash-bits, so that one text can be looked for in another word by word.
std::string words_of(const std::string& text) {
  std::string words = " ";
  for (const char letter : text) words += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : ' ';
  return words + ' ';
}

}  // namespace

void add_settings(CLI::App& verb) {
  verb.add_option("--config", "A file of settings, NAME = VALUE, with the names of these options without the dashes")
      ->type_name("FILE")
      ->expected(1)
      ->configurable(false);
  verb.add_flag("--print-config")
      ->description("Print the settings in force, with where each comes from, as such a file")
      ->configurable(false);
  for (CLI::Option* option : verb.get_options())
    if (!takes_value(*option) && option != verb.get_help_ptr()) option->transform(CLI::Validator(read_flag, ""));
}

bool wants_config_printed(const CLI::App& verb) {
  const CLI::Option* option = verb.get_option_no_throw("--print-config");
  return option != nullptr && option->count() > 0 && option->as<bool>();
}

Origins apply_settings(const CLI::App& app, CLI::App& verb) {
  Origins origins;
  if (verb.get_option_no_throw("--config") == nullptr) return origins;
  const std::map<std::string, Setting> config = read_config(app, verb);
  for (CLI::Option* option : verb.get_options()) {
    const std::string name = name_of(*option);
    if (name.empty() || !option->get_configurable()) continue;
    const std::string variable = variable_of(name);
    const auto in_config = config.find(name);
    if (option->count() > 0) {
      origins[option] = "flag";
    } else if (const auto value = environment(variable)) {
      give(*option, {*value, variable, ""});
      origins[option] = "environment " + variable;
    } else if (in_config != config.end() && !in_config->second.value.empty()) {
      give(*option, in_config->second);
      origins[option] = in_config->second.origin;
    }
  }
  require_config_not_overwritten(verb);
  return origins;
}

std::string origins_behind(const std::string& message, const CLI::App& verb, const Origins& origins) {
  std::vector<std::string> named;
  std::vector<std::string> all;
  for (const CLI::Option* option : options_of(verb)) {
    const auto origin = origins.find(option);
    if (origin == origins.end() || origin->second == "flag") continue;
    const std::string name = name_of(*option);
    all.push_back(fmt::format("{} comes from {}", name, origin->second.substr(origin->second.find(' ') + 1)));
    if (words_of(message).find(words_of(name)) != std::string::npos) named.push_back(all.back());
  }
  return all.empty() ? "" : fmt::format(" ({})", fmt::join(named.empty() ? all : named, "; "));
}

std::string config_text(const CLI::App& verb, const Origins& origins) {
  std::string text = fmt::format(
      "# The settings of dyad {}, to be given again with --config. What has no value is at its default.\n[{}]\n",
      verb.get_name(), verb.get_name());
  for (const CLI::Option* option : options_of(verb)) {
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
