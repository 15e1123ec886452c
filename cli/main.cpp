#include <cstdio>
#include <cstdlib>

#include "address_space.h"
#include "commands.h"
#include "exit_code.h"

int main(int argc, char** argv) {
  using namespace dyad::cli;
  if (const std::string lack = lack_of_address_space(); !lack.empty()) {
    print_marked(Style::red, "dyad:", lack);
    std::_Exit(failed);  // without waiting for the threads of OpenBLAS
  }
  return run_command(argc, argv);
}
