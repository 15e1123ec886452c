#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dyad {

/// The folder that contains `path`; "." if the path names none.
std::string folder_of(const std::string& path);

/// Where a path leads once the symbolic links in its last component are followed.
struct ResolvedPath {
  std::string path;  ///< need not exist
  std::optional<int>
      descriptor;  ///< the descriptor of this process that the path names, as /dev/stdout and /dev/fd/3 do
};

/// Throws std::runtime_error for a cycle of links.
ResolvedPath resolve_links(std::string path);

/// A file that a command reads or writes, for messages: {"x.csv", "the data"}.
struct NamedFile {
  std::string path;  ///< "-": standard input or output; empty: none
  std::string content;
};

/// Throws std::invalid_argument if an output is an input or another output. Files are compared by device and inode; a
/// file that does not exist yet, by its folder and name. Pipes and devices never conflict.
void require_distinct_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs = {});

}  // namespace dyad
