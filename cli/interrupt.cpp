#include <csignal>

#include "command.h"

namespace dyad::cli {
namespace {

volatile std::sig_atomic_t signalled = 0;

}  // namespace

bool interrupted_by_user() { return signalled != 0; }

void watch_for_interrupts() {
  const auto remember = [](int) { signalled = 1; };
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
  // Both come back as errors of the write: a lost reader of messages stops nothing, and a full quota is told.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace dyad::cli
