#pragma once

#include <string>
#include <vector>

namespace dyad::cli {

/// A line `name = value` of a config file.
struct ConfigEntry {
  std::string section;   ///< name of the enclosing [section], a subcommand; empty before the first section
  std::string name;      ///< long name of an option, without dashes
  std::string value;     ///< elements of a list are joined by commas, as on the command line
  std::string location;  ///< for messages: "dyad.toml, line 3"
};

/// Reads all entries of a config file in order.
/// \throws std::invalid_argument with the location, if the file cannot be read or has a syntax error
std::vector<ConfigEntry> read_config_file(const std::string& path);

/// Returns the value in double quotes, escaped for a config file.
std::string quote_value(const std::string& value);

}  // namespace dyad::cli
