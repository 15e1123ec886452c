#include <dyad/error.h>

namespace dyad {
namespace {

std::string describe_location(const std::string& file, std::int64_t line, std::int64_t column) {
  std::string text = file == "-" ? "standard input" : file;
  if (line > 0) text += ", line " + std::to_string(line);
  if (column > 0) text += ", column " + std::to_string(column);
  return text;
}

}  // namespace

DataError::DataError(const std::string& file, std::int64_t line, std::int64_t column,
                     const std::string& what_was_expected)
    : std::runtime_error(describe_location(file, line, column) + ": " + what_was_expected),
      file_(file),
      line_(line),
      column_(column) {}

}  // namespace dyad
