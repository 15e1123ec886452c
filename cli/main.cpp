#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

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

}  // namespace

int main(int argc, char** argv) {
  using namespace dyad::cli;
  if (const std::string lack = lack_of_address_space(); !lack.empty()) {
    print_marked(Style::red, "dyad:", lack);
    std::_Exit(failed);  // without waiting for the threads of OpenBLAS
  }
  keep_memory();
  return run_command(argc, argv);
}
