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
}

void survive_size_limits() { std::signal(SIGXFSZ, SIG_IGN); }

void work_on_without_readers() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace dyad::cli
