#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands.h"
#include "config_file.h"
#include "fuzz.h"

namespace dyad::fuzz {
namespace {

/// Sets an environment variable, given as NAME=VALUE, for the lifetime of the object.
class ScopedVariable {
 public:
  explicit ScopedVariable(const std::string& line) : name_(line.substr(0, line.find('='))) {
    setenv(name_.c_str(), line.c_str() + name_.size() + 1, 1);
  }
  ~ScopedVariable() {
    if (!name_.empty()) unsetenv(name_.c_str());
  }
  ScopedVariable(ScopedVariable&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  ScopedVariable& operator=(ScopedVariable&&) = delete;

 private:
  std::string name_;
};

/// Runs a command that only prints, with standard output redirected to /dev/null.
void run_without_output(const cli::Action& action) {
  static const bool is_silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  require(is_silent && action() == 0, "printing succeeds");
}

/// Parses the input as a command line. Each line before the first empty line is an argument, or an environment variable
/// if it has the form DYAD_RANK=3. The text after the empty line is the content of a config file.
void parse(const std::string& input) {
  const std::size_t gap = input.find("\n\n");
  const std::string lines = input.substr(0, gap);
  std::vector<std::string> arguments;
  std::vector<ScopedVariable> variables;
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    // A name of an environment variable cannot contain a null character.
    if (line.starts_with("DYAD_") && line.find('=') < line.find('\0'))
      variables.emplace_back(line);
    else
      arguments.push_back(line);
    begin = end + 1;
  }
  const MemoryFile config(gap == std::string::npos ? std::string() : input.substr(gap + 2));
  if (gap != std::string::npos) arguments.insert(arguments.end(), {"--config", config.path()});
  const cli::Action action = cli::parse_command(arguments);
  require(static_cast<bool>(action), "a parsed command has an action");
  if (arguments.front() == "man" || arguments.front() == "completion") run_without_output(action);
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  allow_exception<std::invalid_argument>([&] { parse(text_of(data, size)); });
  return 0;
}
