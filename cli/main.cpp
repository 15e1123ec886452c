#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/version.h>

#include "command.h"
#include "exit_code.h"

namespace dyad::cli {
namespace {

volatile std::sig_atomic_t signalled = 0;

int run(int argc, char** argv) {
  CLI::App app{"dyad learns second-order models, y = b + w'x + x'Mx, from data that streams by once.", "dyad"};
  app.require_subcommand(1);
  Action action;
  add_train(app, action);
  add_predict(app, action);
  add_evaluate(app, action);
  add_inspect(app, action);
  add_recover(app, action);
  add_simulate(app, action);
  app.set_version_flag("--version", DYAD_VERSION);
  for (CLI::App* verb : app.get_subcommands({})) verb->set_version_flag("--version", DYAD_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    print_message("dyad: {}\nRun with --help to see what is allowed.\n", error.what());
    return wrong_usage;
  }
  watch_for_interrupts();
  return action();
}

}  // namespace

void print_result(const std::string& text) {
  if (std::fputs((text + '\n').c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw std::runtime_error(fmt::format("standard output cannot be written: {}", std::strerror(errno)));
}

bool interrupted_by_user() { return signalled != 0; }

void watch_for_interrupts() {
  const auto remember = [](int) { signalled = 1; };
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

}  // namespace dyad::cli

int main(int argc, char** argv) {
  using namespace dyad::cli;
  try {
    return run(argc, argv);
  } catch (const dyad::DataError& error) {
    print_message("dyad: {}\n", error.what());
    return bad_data;
  } catch (const std::invalid_argument& error) {
    print_message("dyad: {}\n", error.what());
    return wrong_usage;
  } catch (const std::bad_alloc&) {
    print_message("dyad: out of memory; a smaller dim or rank needs less\n");
    return failed;
  } catch (const std::exception& error) {
    print_message("dyad: {}\n", error.what());
    return failed;
  }
}
