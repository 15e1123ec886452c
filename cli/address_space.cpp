#include "address_space.h"

#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>

namespace dyad::cli {

std::string address_space_error() {
  /// Address space per thread: OpenBLAS reserves a buffer of 128 MB, malloc an arena of 64 MB to 128 MB.
  constexpr double reserved_bytes_per_thread = 256e6;
  /// Number of threads in addition to one per core that the limit must allow.
  constexpr unsigned extra_threads = 2;
  const double reserved_bytes = reserved_bytes_per_thread * (extra_threads + std::thread::hardware_concurrency());
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  if (static_cast<double>(limit.rlim_cur) >= reserved_bytes) return {};
  return fmt::format(
      "the address space is limited to {} MB (ulimit -v), but dyad reserves {:.0f} MB on this machine, most of which "
      "it never uses; raise this limit, and limit the used memory with a control group instead",
      limit.rlim_cur / 1'000'000, reserved_bytes / 1e6);
}

}  // namespace dyad::cli
