#include <stdexcept>
#include <string>
#include <vector>

#include "commands.h"
#include "config_file.h"
#include "fuzz.h"

namespace dyad::fuzz {
namespace {

/// The lines of the input are the arguments; those behind an empty line make a config file.
void parse(const std::string& input) {
  const std::size_t gap = input.find("\n\n");
  const std::string lines = input.substr(0, gap);
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    arguments.push_back(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  const MemoryFile config(gap == std::string::npos ? std::string() : input.substr(gap + 2));
  if (gap != std::string::npos) arguments.insert(arguments.end(), {"--config", config.path()});
  const cli::Action action = cli::parse_command(arguments);
  require(static_cast<bool>(action), "what can be read can be done");
}

}  // namespace
}  // namespace dyad::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  may_refuse<std::invalid_argument>([&] { parse(text_of(data, size)); });
  return 0;
}
