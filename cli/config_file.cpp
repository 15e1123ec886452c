#include "config_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace dyad::cli {
namespace {

constexpr std::string_view whitespace = " \t\r";
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(whitespace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(whitespace) + 1 - first));
}

/// Parser of the text after the = of one line. Refers to the text and the location.
class ValueReader {
 public:
  ValueReader(std::string_view text, const std::string& location) : rest_(text), location_(location) {}

  std::string read() {
    skip_whitespace();
    std::string value = peek() == '[' ? parse_list() : parse_item(" \t");
    skip_whitespace();
    if (!rest_.empty() && peek() != '#')
      fail(fmt::format("unexpected '{}' after the value (quote values with spaces, write lists in [ ])", rest_));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw std::invalid_argument(location_ + ": " + message); }

  [[nodiscard]] char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  char take() {
    const char first = peek();
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    return first;
  }

  void skip_whitespace() { rest_.remove_prefix(std::min(rest_.find_first_not_of(whitespace), rest_.size())); }

  /// Parses a quoted value, or an unquoted one up to one of the `terminators`.
  std::string parse_item(std::string_view terminators) {
    if (peek() == '"' || peek() == '\'') return parse_quoted();
    const std::size_t length = std::min(rest_.find_first_of(terminators), rest_.size());
    std::string value = trimmed(rest_.substr(0, length));
    if (value.empty() || value.front() == '#') fail("expected a value");
    rest_.remove_prefix(length);
    return value;
  }

  /// Parses a value in single quotes, or in double quotes with backslash escapes.
  std::string parse_quoted() {
    const char quote = take();
    std::string value;
    while (!rest_.empty()) {
      char next = take();
      if (next == quote) return value;
      if (next == '\\' && quote == '"') {
        next = take();
        if (next == 'n') next = '\n';
        if (next == 't') next = '\t';
      }
      value += next;
    }
    fail(fmt::format("missing closing {}", quote));
  }

  /// Parses [a, b, c] and joins the elements by commas.
  std::string parse_list() {
    std::string values;
    take();
    for (skip_whitespace(); peek() != ']'; skip_whitespace()) {
      if (!values.empty()) values += ',';
      values += parse_item(",]");
      skip_whitespace();
      if (peek() == ',')
        take();
      else if (peek() != ']')
        fail("expected , or ] in the list");
    }
    take();
    return values;
  }

  std::string_view rest_;
  const std::string& location_;
};

/// Reads the file with a size limit, because a device such as /dev/zero has no end.
std::string read_text(const std::string& path) {
  /// All options of all subcommands together take a few kB.
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  const auto fail = [&](const std::string& reason) {
    throw std::invalid_argument(fmt::format("cannot read the config file {}: {}", path, reason));
  };
  std::ifstream file(path);
  std::string content(max_bytes + 1, '\0');
  if (file.is_open()) file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.is_open() || file.bad()) fail(std::strerror(errno));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.size() > max_bytes) fail("larger than 1 MiB");
  return content;
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  std::istringstream lines(read_text(path));
  std::vector<ConfigEntry> entries;
  std::set<std::pair<std::string, std::string>> seen;
  std::string section;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (number == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    const std::string text = trimmed(line);
    const std::string location = fmt::format("{}, line {}", path, number);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      const std::size_t end = text.find(']');
      const std::string remainder = end == std::string::npos ? "no ]" : trimmed(text.substr(end + 1));
      if (!remainder.empty() && remainder.front() != '#')
        throw std::invalid_argument(fmt::format("{}: expected [COMMAND], got '{}'", location, text));
      section = trimmed(text.substr(1, end - 1));
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::string name = trimmed(text.substr(0, equals));
    if (equals == std::string::npos || name.empty())
      throw std::invalid_argument(fmt::format("{}: expected NAME = VALUE, got '{}'", location, text));
    if (!seen.emplace(section, name).second)
      throw std::invalid_argument(fmt::format("{}: duplicate entry '{}'", location, name));
    entries.push_back(
        {section, name, ValueReader(std::string_view(text).substr(equals + 1), location).read(), location});
  }
  return entries;
}

std::string quote_value(const std::string& value) {
  std::string text = "\"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter == '\n' ? "\\n" : std::string(1, letter);
  }
  return text + '"';
}

}  // namespace dyad::cli
