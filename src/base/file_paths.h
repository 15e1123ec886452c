#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dyad {

/// Folder that contains `path`; "." if the path has no folder component.
std::string folder_of(const std::string& path);

/// Target of a path after the symbolic links in its last component are followed.
struct ResolvedPath {
  std::string path;  ///< may not exist
  /// Open descriptor of this process that the path refers to, such as 1 for /dev/stdout and 3 for /dev/fd/3.
  std::optional<int> descriptor;
};

/// Follows the symbolic links in the last component of a path. Throws std::runtime_error for a cycle of links.
ResolvedPath resolve_links(std::string path);

/// A file that a command reads or writes, and a description of its content for error messages: {"x.csv", "the data"}.
struct NamedFile {
  std::string path;  ///< "-": standard input or output; empty: no file
  std::string content;
};

/// Throws std::invalid_argument if an output is the same file as an input or another output. Existing files are
/// compared by device and inode, other files by folder and name. Pipes and devices never conflict.
void require_distinct_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs = {});

}  // namespace dyad
