#pragma once

#include <string>
#include <vector>

namespace dyad::cli {

/// One line `name = value` of a config file.
struct ConfigEntry {
  std::string section;  ///< the verb of the [section] it stands in; empty above all sections
  std::string name;
  std::string value;  ///< of a list: with commas between, as on the command line
  std::string place;  ///< "dyad.toml, line 3"
};

/// Throws std::invalid_argument for a file that cannot be read or is none, with the place.
std::vector<ConfigEntry> read_config_file(const std::string& path);

/// The value as it has to stand in a config file.
std::string quoted(const std::string& value);

}  // namespace dyad::cli
