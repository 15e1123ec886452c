#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// Where each option that has a value got it: the flag, a variable of the environment, a line of the config file.
using Origins = std::map<const CLI::Option*, std::string>;

/// --config and --print-config.
void add_settings(CLI::App& verb);
bool wants_config_printed(const CLI::App& verb);

/// Looks in the environment, and then in the config file, for the options that the command line has left open. Throws
/// std::invalid_argument with the variable or the line.
Origins apply_settings(const CLI::App& app, CLI::App& verb);

/// The verb's settings as a config file that gives them again.
std::string config_text(const CLI::App& verb, const Origins& origins);

}  // namespace dyad::cli
