#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>

namespace dyad::test {

/// Result of a command.
struct Result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// True if the message names this line (and column, unless 0) of the file.
inline bool names_location(const std::string& message, const std::string& file, int line, int column = 0) {
  std::string pattern = file + "(, line |:)" + std::to_string(line);
  if (column > 0) pattern += "(, column |:)" + std::to_string(column);
  return std::regex_search(message, std::regex(pattern + "[^0-9]"));
}

inline bool contains(const std::string& text, const std::string& substring) {
  return text.find(substring) != std::string::npos;
}

/// Runs a command in a shell and captures its output.
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

/// Runs `PREFIX dyad ARGUMENTS` in a shell. The prefix sets variables or limits.
inline Result run_dyad(const std::string& arguments, const std::string& prefix = "") {
  return run_shell(prefix + DYAD_COMMAND + " " + arguments);
}

}  // namespace dyad::test
