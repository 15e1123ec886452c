#pragma once

#include <string>

namespace dyad {

/// Memory that this process can use, in bytes: the minimum of the physical memory and the limits of its control group
/// and of that group's ancestors (cgroups versions 1 and 2). `root` is prepended to the paths of /proc and of the
/// control group file systems; tests set it.
double usable_memory_bytes(const std::string& root = "");

}  // namespace dyad
