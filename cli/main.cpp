#include "commands.h"

int main(int argc, char** argv) { return dyad::cli::run_command(argc, argv); }
