#pragma once

#include <string>
#include <vector>

#include "command.h"

/// \file
/// Entry points of the command line. This folder contains one file per subcommand (train, predict, evaluate, inspect,
/// recover, simulate, man, completion) and what they share: options, config files, environment variables, messages and
/// exit codes. It uses the public API of the library only.

namespace dyad::cli {

/// Adds all subcommands with their options to `app`. A successful parse assigns the selected subcommand to `action`.
void add_commands(CLI::App& app, Action& action);

/// Parses the arguments (without the program name), the environment and the config file. Prints nothing and can be
/// called repeatedly. `--help` and `--version` give an action that prints them.
/// \throws std::invalid_argument that names the invalid argument
Action parse_command(const std::vector<std::string>& arguments);

/// Parses and runs the command, prints errors on standard error and returns the exit code.
int run_command(int argc, const char* const* argv);

}  // namespace dyad::cli
