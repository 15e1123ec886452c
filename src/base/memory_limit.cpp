#include "base/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include <unistd.h>

namespace dyad {
namespace {

constexpr double unlimited = std::numeric_limits<double>::infinity();

std::vector<std::string> split_text(const std::string& text, char separator) {
  std::vector<std::string> fields;
  std::istringstream stream(text);
  for (std::string field; std::getline(stream, field, separator);) fields.push_back(field);
  return fields;
}

/// Control group hierarchy with a memory controller. See cgroups(7) and proc_pid_mountinfo(5).
struct Hierarchy {
  std::string file_system;  ///< cgroup (version 1) or cgroup2
  std::string limit_file;   ///< name of the file with the limit in the folder of a group
  std::string group;        ///< group of this process, as a path from the root of the hierarchy

  /// True if a mount with this file system type and these options contains the hierarchy. The options of a version 1
  /// mount list its controllers. Version 2 has a single hierarchy.
  [[nodiscard]] bool is_mounted_by(const std::string& type, const std::string& options) const {
    if (type != file_system) return false;
    const std::vector<std::string> names = split_text(options, ',');
    return type == "cgroup2" || std::find(names.begin(), names.end(), "memory") != names.end();
  }
};

/// Reads the hierarchies of this process. A line of /proc/self/cgroup is ID:CONTROLLERS:PATH. CONTROLLERS is empty for
/// version 2.
std::vector<Hierarchy> read_hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const std::vector<std::string> names = split_text(controllers, ',');
    if (controllers.empty())
      found.push_back({"cgroup2", "memory.max", group});
    else if (std::find(names.begin(), names.end(), "memory") != names.end())
      found.push_back({"cgroup", "memory.limit_in_bytes", group});
  }
  return found;
}

/// Reads a limit in bytes. "max" and a missing file mean no limit. Version 1 represents no limit by the largest
/// multiple of the page size, which exceeds any physical memory.
double read_limit(const std::filesystem::path& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  double bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() ? bytes : unlimited;
}

/// Smallest limit in bytes of the hierarchy's group and its ancestors, up to the group `mounted_group`, whose folder is
/// `mount_point`.
double smallest_limit(const Hierarchy& hierarchy, const std::string& mount_point, const std::string& mounted_group) {
  // In a container without a cgroup namespace, the root of the mount is the group of the container.
  const bool is_below = hierarchy.group.starts_with(mounted_group);
  const std::string below = is_below ? hierarchy.group.substr(mounted_group.size()) : std::string();
  double smallest = read_limit(std::filesystem::path(mount_point) / hierarchy.limit_file);
  std::filesystem::path group = mount_point;
  for (const std::string& name : split_text(below, '/')) {
    if (name.empty() || name == "..") continue;  // "..": the group is outside the cgroup namespace of this process
    group /= name;
    smallest = std::min(smallest, read_limit(group / hierarchy.limit_file));
  }
  return smallest;
}

/// Smallest limit in bytes over all mounted hierarchies of this process.
double control_group_limit(const std::string& root) {
  double smallest = unlimited;
  const std::vector<Hierarchy> all = read_hierarchies(root);
  // Fields: ID PARENT DEVICE GROUP MOUNT-POINT MOUNT-OPTIONS [TAGS...] - TYPE SOURCE OPTIONS
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> fields = split_text(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    for (const Hierarchy& hierarchy : all)
      if (hierarchy.is_mounted_by(dash[1], dash[3]))
        smallest = std::min(smallest, smallest_limit(hierarchy, root + fields[4], fields[3]));
  }
  return smallest;
}

}  // namespace

double usable_memory_bytes(const std::string& root) {
  const double physical = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::min(physical, control_group_limit(root));
}

}  // namespace dyad
