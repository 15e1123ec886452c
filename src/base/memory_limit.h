#pragma once

#include <string>

namespace dyad {

/// Bytes of memory that this process may use: the physical memory, or the limit of its control group (versions 1 and 2)
/// or of one of that group's ancestors if it is smaller. `root` is the directory that /proc and the control group file
/// systems are looked up in; tests pass another one.
double usable_memory_bytes(const std::string& root = "");

}  // namespace dyad
