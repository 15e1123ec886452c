#include <csignal>

#include "command.h"

namespace dyad::cli {
namespace {

volatile std::sig_atomic_t was_signaled = 0;

}  // namespace

bool is_interrupted() { return was_signaled != 0; }

void install_interrupt_handlers() {
  const auto handler = [](int) { was_signaled = 1; };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

void ignore_broken_pipe_signal() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace dyad::cli
