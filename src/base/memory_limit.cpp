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

std::vector<std::string> separated(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

/// A control group hierarchy with a memory controller. See cgroups(7) and proc_pid_mountinfo(5).
struct Hierarchy {
  std::string file_system;  ///< cgroup (version 1) or cgroup2
  std::string limit_file;
  std::string group;  ///< of this process, as a path from the root of the hierarchy

  /// Version 1 mounts one hierarchy for each set of controllers, which are options of the mount.
  [[nodiscard]] bool is_mounted_by(const std::string& type, const std::string& options) const {
    if (type != file_system) return false;
    const std::vector<std::string> names = separated(options, ',');
    return type == "cgroup2" || std::find(names.begin(), names.end(), "memory") != names.end();
  }
};

/// Lines of /proc/self/cgroup are ID:CONTROLLERS:PATH. Version 2 has no controllers there.
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    const std::vector<std::string> names = separated(controllers, ',');
    if (controllers.empty())
      found.push_back({"cgroup2", "memory.max", group});
    else if (std::find(names.begin(), names.end(), "memory") != names.end())
      found.push_back({"cgroup", "memory.limit_in_bytes", group});
  }
  return found;
}

/// "max", or no file, is no limit. Version 1 writes the largest multiple of the page size instead.
double limit_in(const std::filesystem::path& path) {
  std::string text;
  std::getline(std::ifstream(path), text);
  double bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() ? bytes : unlimited;
}

/// The smallest limit of a group and its ancestors, up to the mount point.
double limit_of(const Hierarchy& hierarchy, const std::string& mount_point, const std::string& mounted_group) {
  // Inside a container without a namespace of its own, the mount shows the container's group as its root.
  const bool is_below = hierarchy.group.starts_with(mounted_group);
  const std::string below = is_below ? hierarchy.group.substr(mounted_group.size()) : std::string();
  double smallest = limit_in(std::filesystem::path(mount_point) / hierarchy.limit_file);
  std::filesystem::path group = mount_point;
  for (const std::string& name : separated(below, '/')) {
    if (name.empty() || name == "..") continue;
    group /= name;
    smallest = std::min(smallest, limit_in(group / hierarchy.limit_file));
  }
  return smallest;
}

double control_group_limit(const std::string& root) {
  double smallest = unlimited;
  const std::vector<Hierarchy> all = hierarchies(root);
  // Fields: ID PARENT DEVICE GROUP MOUNT-POINT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::vector<std::string> fields = separated(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    for (const Hierarchy& hierarchy : all)
      if (hierarchy.is_mounted_by(dash[1], dash[3]))
        smallest = std::min(smallest, limit_of(hierarchy, root + fields[4], fields[3]));
  }
  return smallest;
}

}  // namespace

double usable_memory_bytes(const std::string& root) {
  const double physical = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::min(physical, control_group_limit(root));
}

}  // namespace dyad
