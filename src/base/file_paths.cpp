#include "base/file_paths.h"

#include <charconv>
#include <filesystem>
#include <stdexcept>

#include <sys/stat.h>
#include <unistd.h>

namespace dyad {
namespace {

/// Identity of a file: two paths refer to the same file if and only if their identities are equal. For a file that does
/// not exist, device and inode are those of its folder, and `name` is its name there.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  std::string name{};

  bool operator==(const FileIdentity&) const = default;
};

/// Identity of a regular file or of a file that does not exist. Returns std::nullopt for pipes, devices and paths whose
/// folder cannot be accessed. The path "-" refers to the open descriptor `standard_descriptor`.
std::optional<FileIdentity> identify(const std::string& path, int standard_descriptor) {
  struct stat status {};
  const int failed = path == "-" ? fstat(standard_descriptor, &status) : stat(path.c_str(), &status);
  if (failed == 0) {
    if (!S_ISREG(status.st_mode)) return std::nullopt;
    return FileIdentity{status.st_dev, status.st_ino};
  }
  if (path == "-") return std::nullopt;
  const std::string target = resolve_links(path).path;
  if (stat(folder_of(target).c_str(), &status) != 0) return std::nullopt;
  return FileIdentity{status.st_dev, status.st_ino, std::filesystem::path(target).filename()};
}

/// Returns N for a path in the folder /proc/PID/fd of this process (or of one of its threads) whose last component is
/// the number N, and std::nullopt for any other path.
std::optional<int> parse_descriptor_path(const std::string& path) {
  std::error_code failure;
  const std::string folder = std::filesystem::canonical(folder_of(path), failure);
  const std::string process = "/proc/" + std::to_string(getpid());
  if (failure || !(folder == process + "/fd" || (folder.starts_with(process + "/task/") && folder.ends_with("/fd"))))
    return std::nullopt;
  const std::string name = std::filesystem::path(path).filename();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

/// Name of a file in messages. `standard_name` is the name of the path "-".
std::string name_of(const NamedFile& file, const char* standard_name) {
  return file.path == "-" ? standard_name : file.path;
}

}  // namespace

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

ResolvedPath resolve_links(std::string path) {
  constexpr int max_links = 40;  // limit of Linux, path_resolution(7)
  for (int links = 0; links < max_links; ++links) {
    if (const std::optional<int> descriptor = parse_descriptor_path(path)) return {path, descriptor};
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) return {path, std::nullopt};
    path = next.is_absolute() ? next.string() : (std::filesystem::path(folder_of(path)) / next).string();
  }
  throw std::runtime_error(path + " cannot be opened: too many levels of symbolic links (remove a cycle of links)");
}

void require_distinct_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    const auto output_identity = identify(outputs[i].path, STDOUT_FILENO);
    const auto refuse_if_same = [&](const NamedFile& other, int descriptor, const char* standard_name) {
      const bool both_are_stdout = descriptor == STDOUT_FILENO && other.path == "-" && outputs[i].path == "-";
      if (!both_are_stdout &&
          (other.path.empty() || !output_identity || identify(other.path, descriptor) != output_identity))
        return;
      throw std::invalid_argument(outputs[i].content + " would be written over " + other.content + " in " +
                                  name_of(other, standard_name) + "; give another file");
    };
    for (const NamedFile& input : inputs) refuse_if_same(input, STDIN_FILENO, "standard input");
    for (std::size_t j = 0; j < i; ++j) refuse_if_same(outputs[j], STDOUT_FILENO, "standard output");
  }
}

}  // namespace dyad
