#include "address_space.h"

#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

namespace dyad::cli {

std::string lack_of_address_space() {
  constexpr double per_thread = 256e6;  // OpenBLAS reserves 128 MB, the C library 64 MB to 128 MB
  const double needed = per_thread * (2 + std::thread::hardware_concurrency());
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (static_cast<double>(limit.rlim_cur) >= needed) return {};
  return fmt::format(
      "the address space is limited to {} MB (ulimit -v), but {:.0f} MB are reserved on this machine, most of which is "
      "never used; raise that limit, and bound the memory that is used by a control group instead",
      limit.rlim_cur / 1'000'000, needed / 1e6);
}

}  // namespace dyad::cli
