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

/// A variable of the environment, NAME=VALUE, for a while.
class Variable {
 public:
  explicit Variable(const std::string& line) : name_(line.substr(0, line.find('='))) {
    setenv(name_.c_str(), line.c_str() + name_.size() + 1, 1);
  }
  ~Variable() {
    if (!name_.empty()) unsetenv(name_.c_str());
  }
  Variable(Variable&& other) noexcept : name_(std::exchange(other.name_, {})) {}
  Variable& operator=(Variable&&) = delete;

 private:
  std::string name_;
};

void run_without_output(const cli::Action& action) {
  static const bool is_silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  require(is_silent && action() == 0, "what is only printed can be printed");
}

/// The lines of the input are the arguments, those that begin like DYAD_RANK=3 variables; those behind an empty line
/// make a config file.
void parse(const std::string& input) {
  const std::size_t gap = input.find("\n\n");
  const std::string lines = input.substr(0, gap);
  std::vector<std::string> arguments;
  std::vector<Variable> variables;
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    if (line.starts_with("DYAD_") && line.find('=') < line.find('\0'))
      variables.emplace_back(line);
    else
      arguments.push_back(line);
    begin = end + 1;
  }
  const MemoryFile config(gap == std::string::npos ? std::string() : input.substr(gap + 2));
  if (gap != std::string::npos) arguments.insert(arguments.end(), {"--config", config.path()});
  const cli::Action action = cli::parse_command(arguments);
  require(static_cast<bool>(action), "what can be read can be done");
  if (arguments.front() == "man" || arguments.front() == "completion") run_without_output(action);
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  may_refuse<std::invalid_argument>([&] { parse(text_of(data, size)); });
  return 0;
}
