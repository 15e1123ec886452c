#include "suggestion.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace dyad::cli {
namespace {

std::string without_dashes(const std::string& word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

/// How many letters are to be put in, left out, changed, or swapped with their neighbours.
std::size_t distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  std::vector<std::size_t> current(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before_last = std::exchange(last, current);
    current[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool differ = from[i - 1] != to[j - 1];
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (differ ? 1 : 0)});
      if (i > 1 && j > 1 && differ && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
  }
  return current[to.size()];
}

}  // namespace

std::string did_you_mean(const std::string& given, const std::vector<std::string>& words) {
  constexpr std::size_t longest_word = 40;
  const std::string start = CLI::detail::to_lower(without_dashes(given));
  if (start.empty() || start.size() > longest_word) return "";
  std::size_t least = 1 + std::max<std::size_t>(1, start.size() / 3);
  std::string best;
  for (const std::string& word : words) {
    const std::string name = without_dashes(word);
    const std::size_t changes = start.size() > 1 && name.starts_with(start) ? 1 : distance(start, name);
    const bool is_better = changes < least || (changes == least && word.size() < best.size());
    if (!is_better || changes >= name.size()) continue;
    least = changes;
    best = word;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

}  // namespace dyad::cli
