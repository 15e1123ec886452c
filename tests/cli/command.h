#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace dyad::test {

struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Runs a command of the shell.
inline Result run_shell(const std::string& command) {
  char errors[] = "/tmp/dyad-test-XXXXXX";
  const int descriptor = mkstemp(errors);
  if (descriptor < 0) throw std::runtime_error("no temporary file");
  close(descriptor);
  Result result;
  FILE* pipe = popen((command + " 2>" + errors).c_str(), "r");
  std::array<char, 4096> buffer{};
  for (std::size_t read = 0; (read = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.out.append(buffer.data(), read);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ostringstream text;
  text << std::ifstream(errors).rdbuf();
  result.err = text.str();
  std::remove(errors);
  return result;
}

/// Runs `dyad ARGUMENTS` through the shell, behind what `before` sets up there.
inline Result run_dyad(const std::string& arguments, const std::string& before = "") {
  return run_shell(before + DYAD_COMMAND + " " + arguments);
}

}  // namespace dyad::test
