#pragma once

#include <fstream>
#include <stdexcept>
#include <string>

/// Parts of a documentation page: tables and single figures.

namespace dyad::bench {

/// Writes FOLDER/NAME.md. scripts/paper inserts it between the markers <!--NAME--> and <!--/--> of docs/paper.md.
inline void write_part(const std::string& folder, const std::string& name, const std::string& text) {
  std::ofstream file(folder + "/" + name + ".md");
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write the part " + name + " to " + folder);
}

}  // namespace dyad::bench
