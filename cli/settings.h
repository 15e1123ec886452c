#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// Where each option that has a value got it: the flag, a variable of the environment, a line of the config file.
using Origins = std::map<const CLI::Option*, std::string>;

/// --config and --print-config. Flags take true and false by the same words wherever they are said. Call it when the
/// verb has all of its options.
void add_settings(CLI::App& verb);
bool wants_config_printed(const CLI::App& verb);

/// Looks in the environment, and then in the config file, for the options that the command line has left open. Throws
/// std::invalid_argument with the variable or the line.
Origins apply_settings(const CLI::App& app, CLI::App& verb);

/// " (rank comes from DYAD_RANK)": the settings that the message names and no flag has given, or all of these where it
/// names none.
std::string origins_behind(const std::string& message, const CLI::App& verb, const Origins& origins);

/// The verb's settings as a config file that gives them again.
std::string config_text(const CLI::App& verb, const Origins& origins);

}  // namespace dyad::cli
