#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// What help, the manual, completions and settings have to know about verbs and options.
std::vector<const CLI::App*> verbs_of(const CLI::App& app);
std::vector<std::string> verb_names(const CLI::App& app);
std::vector<const CLI::Option*> options_of(const CLI::App& verb);
std::vector<const CLI::Option*> positionals_of(const CLI::App& verb);

/// -m and --model.
std::vector<std::string> spellings_of(const CLI::Option& option);

/// --rank is rank, and what has no long name is nothing.
std::string name_of(const CLI::Option& option);

bool takes_value(const CLI::Option& option);

/// The words that an option allows, where it allows nothing else.
std::vector<std::string> choices_of(const CLI::Option& option);

}  // namespace dyad::cli
