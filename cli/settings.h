#pragma once

#include <map>
#include <string>

#include <CLI/CLI.hpp>

namespace dyad::cli {

/// Origin of the value of each option that has one: "flag", "environment DYAD_RANK" or "config dyad.toml, line 3".
using OptionOrigins = std::map<const CLI::Option*, std::string>;

/// Adds --config and --print-config, and makes all flags accept the same spellings of true and false. Call it after all
/// other options of the subcommand are added.
void add_settings(CLI::App& subcommand);

/// True if --print-config is set.
bool is_config_requested(const CLI::App& subcommand);

/// Sets options that are not on the command line from the environment or else from the config file.
/// \throws std::invalid_argument with the name of the variable or the line of the file
OptionOrigins apply_settings(const CLI::App& app, CLI::App& subcommand);

/// Returns " (rank comes from DYAD_RANK)" for the options that the message names and that the environment or the config
/// file has set; for all such options if the message names none.
std::string describe_origins(const std::string& message, const CLI::App& subcommand, const OptionOrigins& origins);

/// Returns the settings of the subcommand as a config file.
std::string config_text(const CLI::App& subcommand, const OptionOrigins& origins);

}  // namespace dyad::cli
