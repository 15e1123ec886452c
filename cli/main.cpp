#include <cstdlib>
#include <exception>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <fcntl.h>
#include <unistd.h>

#include "address_space.h"
#include "commands.h"
#include "exit_code.h"

namespace {

/// The process is ours: what it has let go it keeps for what comes next, for the system clears every page that it
/// gives.
void keep_memory() {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_TOP_PAD, 16 << 20);
#endif
}

/// Occupies standard descriptors that the caller closed, so that no file is opened under their numbers and receives
/// messages. Each is opened for the wrong direction: using it fails as it does on a closed one.
void reserve_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// For exceptions that leave a destructor: nlohmann::json allocates memory in its own. Allocates none itself.
[[noreturn]] void report_and_exit() {
  constexpr std::string_view message = "dyad: out of memory, or an internal error; files are as they were before\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  std::_Exit(dyad::cli::failed);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dyad::cli;
  reserve_standard_descriptors();
  std::set_terminate(report_and_exit);
  if (const std::string lack = lack_of_address_space(); !lack.empty()) {
    print_marked(Style::red, "dyad:", lack);
    std::_Exit(failed);  // without waiting for the threads of OpenBLAS
  }
  keep_memory();
  return run_command(argc, argv);
}
