#include "encoding/group_file.h"

#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dyad/error.h>

#include "base/text.h"
#include "io/line_reader.h"

namespace dyad {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view spaces = " \t\r";
  const std::size_t first = text.find_first_not_of(spaces);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

}  // namespace

PriorGroups read_group_file(const std::string& path, const std::function<bool()>& stop) {
  LineReader reader(Input(path, stop));
  LineBlock lines;
  std::vector<std::string> names;
  std::vector<std::int32_t> group_of;
  std::unordered_map<std::string, std::int32_t> numbers;
  while (reader.next(lines)) {
    std::int64_t line = lines.first_line;
    for (std::string_view text = lines.text; !text.empty(); ++line) {
      const std::size_t end = text.find('\n');
      const std::string name = escape_invalid_utf8(trim(text.substr(0, end)));
      if (name.empty()) throw DataError(path, line, 0, "expected the name or number of a group, got an empty line");
      const auto [entry, is_new] = numbers.try_emplace(name, static_cast<std::int32_t>(names.size()));
      if (is_new) names.push_back(name);
      group_of.push_back(entry->second);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }
  if (names.empty()) throw DataError(path, 0, 0, "expected one group per line, got an empty file");
  return PriorGroups(std::move(names), std::move(group_of));
}

}  // namespace dyad
