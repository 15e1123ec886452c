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

constexpr std::string_view blanks = " \t\r";
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(blanks) + 1 - first));
}

/// Reads the value behind the = of one line.
class ValueReader {
 public:
  ValueReader(std::string_view text, const std::string& place) : rest_(text), place_(place) {}

  std::string read() {
    skip_blanks();
    std::string value = peek() == '[' ? list() : item(" \t");
    skip_blanks();
    if (!rest_.empty() && peek() != '#')
      fail(fmt::format("expected one value, or several in quotes or [ ]; got '{}' behind it", rest_));
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw std::invalid_argument(place_ + ": " + message); }

  [[nodiscard]] char peek() const { return rest_.empty() ? '\0' : rest_.front(); }

  char take() {
    const char first = peek();
    rest_.remove_prefix(rest_.empty() ? 0 : 1);
    return first;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(blanks), rest_.size())); }

  std::string item(std::string_view ends) {
    if (peek() == '"' || peek() == '\'') return in_quotes();
    const std::size_t length = std::min(rest_.find_first_of(ends), rest_.size());
    std::string word = trimmed(rest_.substr(0, length));
    if (word.empty() || word.front() == '#') fail("expected a value");
    rest_.remove_prefix(length);
    return word;
  }

  std::string in_quotes() {
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
    fail(fmt::format("expected {} at the end of the value", quote));
  }

  std::string list() {
    std::string values;
    take();
    for (skip_blanks(); peek() != ']'; skip_blanks()) {
      if (!values.empty()) values += ',';
      values += item(",]");
      skip_blanks();
      if (peek() == ',')
        take();
      else if (peek() != ']')
        fail("expected , or ] in the list");
    }
    take();
    return values;
  }

  std::string_view rest_;
  const std::string& place_;
};

/// At most 1 MiB: all options of all verbs together take a few kB, and a device such as /dev/zero never ends.
std::string content_of(const std::string& path) {
  constexpr std::size_t max_bytes = std::size_t{1} << 20;
  const auto refuse = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("the config file {} {}", path, why));
  };
  std::ifstream file(path);
  std::string content(max_bytes + 1, '\0');
  if (file.is_open()) file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.is_open() || file.bad()) refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
  content.resize(static_cast<std::size_t>(file.gcount()));
  if (content.size() > max_bytes) refuse("has more than 1 MiB; expected lines NAME = VALUE");
  return content;
}

}  // namespace

std::vector<ConfigEntry> read_config_file(const std::string& path) {
  std::istringstream lines(content_of(path));
  std::vector<ConfigEntry> entries;
  std::set<std::pair<std::string, std::string>> seen;
  std::string section;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (number == 1 && line.starts_with(byte_order_mark)) line.erase(0, byte_order_mark.size());
    const std::string text = trimmed(line);
    const std::string place = fmt::format("{}, line {}", path, number);
    if (text.empty() || text.front() == '#' || text.front() == ';') continue;
    if (text.front() == '[') {
      const std::size_t end = text.find(']');
      const std::string behind = end == std::string::npos ? "no ]" : trimmed(text.substr(end + 1));
      if (!behind.empty() && behind.front() != '#')
        throw std::invalid_argument(fmt::format("{}: expected [VERB], got '{}'", place, text));
      section = trimmed(text.substr(1, end - 1));
      continue;
    }
    const std::size_t equals = text.find('=');
    const std::string name = trimmed(text.substr(0, equals));
    if (equals == std::string::npos || name.empty())
      throw std::invalid_argument(fmt::format("{}: expected NAME = VALUE, got '{}'", place, text));
    if (!seen.emplace(section, name).second)
      throw std::invalid_argument(fmt::format("{}: '{}' is there twice", place, name));
    entries.push_back({section, name, ValueReader(std::string_view(text).substr(equals + 1), place).read(), place});
  }
  return entries;
}

std::string quoted(const std::string& value) {
  std::string text = "\"";
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') text += '\\';
    text += letter == '\n' ? "\\n" : std::string(1, letter);
  }
  return text + '"';
}

}  // namespace dyad::cli
