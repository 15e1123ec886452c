#include "base/peak_memory.h"

#include <fstream>
#include <string>

#include <sys/resource.h>

namespace dyad {

std::int64_t peak_rss_bytes() {
  // VmHWM is preferred, because exec() resets it. ru_maxrss can include the size of the parent process.
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace dyad
