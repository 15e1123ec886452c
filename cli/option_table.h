#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// Queries of the parser, for the manual, completions, settings and error messages.
std::vector<const CLI::App*> subcommands_of(const CLI::App& app);
std::vector<std::string> subcommand_names(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& subcommand);
std::vector<const CLI::Option*> positionals_of(const CLI::App& subcommand);

/// All names of an option with dashes: -m and --model.
std::vector<std::string> spellings_of(const CLI::Option& option);

/// The first long name without dashes; empty if there is none.
std::string name_of(const CLI::Option& option);

/// False for flags.
bool takes_value(const CLI::Option& option);

/// The allowed values of an option that add_choice() has added; else empty.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace dyad::cli
