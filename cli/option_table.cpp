#include "option_table.h"

namespace dyad::cli {

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* subcommand : subcommands_of(app)) names.push_back(subcommand->get_name());
  return names;
}

std::vector<const CLI::Option*> options_of(const CLI::App& subcommand) {
  return subcommand.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

std::vector<const CLI::Option*> positionals_of(const CLI::App& subcommand) {
  return subcommand.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> spellings_of(const CLI::Option& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.get_snames()) all.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) all.push_back("--" + name);
  return all;
}

std::string name_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : option.get_lnames().front();
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  if (!takes_value(option) || type.find('|') == std::string::npos) return {};
  return CLI::detail::split(type, '|');
}

}  // namespace dyad::cli
