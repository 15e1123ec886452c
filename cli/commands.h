#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace dyad::cli {

/// All verbs with all of their options. A parse that succeeds leaves what the chosen verb does in `action`.
void add_commands(CLI::App& app, Action& action);

/// What these arguments (behind the name of the program), the environment and the config file ask for; help and
/// version, too. Prints nothing and may be called any number of times. Throws std::invalid_argument that says what is
/// wrong.
Action parse_command(const std::vector<std::string>& arguments);

/// The whole program: parses, runs, explains on standard error what went wrong, and returns the exit code.
int run_command(int argc, const char* const* argv);

}  // namespace dyad::cli
