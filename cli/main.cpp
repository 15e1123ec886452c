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

/// Makes malloc keep freed memory for later allocations. Otherwise the kernel zeroes every page that is returned to it
/// and allocated again.
void configure_malloc() {
#ifdef __GLIBC__
  /// Larger blocks are mapped and unmapped individually; the largest value that glibc accepts.
  constexpr int mmap_threshold_bytes = 32 << 20;
  /// Free memory at the top of the heap is returned to the kernel above this size.
  constexpr int trim_threshold_bytes = 256 << 20;
  /// The heap grows by at least this size.
  constexpr int top_pad_bytes = 16 << 20;
  mallopt(M_MMAP_THRESHOLD, mmap_threshold_bytes);
  mallopt(M_TRIM_THRESHOLD, trim_threshold_bytes);
  mallopt(M_TOP_PAD, top_pad_bytes);
#endif
}

/// Opens /dev/null in place of standard descriptors that the caller closed. Otherwise the next opened file would get
/// the descriptor of standard error and receive messages. The access mode is opposite to the use, so that reads and
/// writes fail as they do on a closed descriptor.
void reserve_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0) (void)!open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/// Terminate handler for exceptions thrown by destructors (that of nlohmann::json allocates memory). Does not allocate.
[[noreturn]] void report_and_exit() {
  constexpr std::string_view message = "dyad: out of memory or internal error; no file was changed\n";
  (void)!write(STDERR_FILENO, message.data(), message.size());
  std::_Exit(dyad::cli::runtime_failure);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace dyad::cli;
  reserve_standard_descriptors();
  std::set_terminate(report_and_exit);
  if (const std::string error = address_space_error(); !error.empty()) {
    print_labeled(Style::red, "dyad:", error);
    std::_Exit(runtime_failure);  // exit handlers would wait for the threads of OpenBLAS
  }
  configure_malloc();
  return run_command(argc, argv);
}
