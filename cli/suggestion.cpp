#include "suggestion.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace dyad::cli {
namespace {

std::string without_dashes(const std::string& text) {
  return text.substr(std::min(text.find_first_not_of('-'), text.size()));
}

/// Restricted Damerau-Levenshtein distance: number of insertions, deletions, substitutions and transpositions.
std::size_t edit_distance(const std::string& from, const std::string& to) {
  std::vector<std::size_t> two_rows_up;
  std::vector<std::size_t> row_above;
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    two_rows_up = std::exchange(row_above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool differs = from[i - 1] != to[j - 1];
      row[j] = std::min({row_above[j] + 1, row[j - 1] + 1, row_above[j - 1] + (differs ? 1 : 0)});
      if (i > 1 && j > 1 && differs && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
        row[j] = std::min(row[j], two_rows_up[j - 2] + 1);
    }
  }
  return row[to.size()];
}

}  // namespace

std::string did_you_mean(const std::string& text, const std::vector<std::string>& candidates) {
  /// Longer texts are file names rather than mistyped options, whose names have at most 16 letters.
  constexpr std::size_t max_length = 40;
  /// One change is accepted for each group of this many letters, and at least one.
  constexpr std::size_t letters_per_change = 3;
  const std::string typed = CLI::detail::to_lower(without_dashes(text));
  if (typed.empty() || typed.size() > max_length) return "";
  std::size_t best_distance = 1 + std::max<std::size_t>(1, typed.size() / letters_per_change);
  std::string best;
  for (const std::string& candidate : candidates) {
    const std::string name = without_dashes(candidate);
    const std::size_t distance = typed.size() > 1 && name.starts_with(typed) ? 1 : edit_distance(typed, name);
    const bool is_closer = distance < best_distance || (distance == best_distance && candidate.size() < best.size());
    if (!is_closer || distance >= name.size()) continue;
    best_distance = distance;
    best = candidate;
  }
  return best.empty() ? "" : fmt::format("; did you mean {}?", best);
}

}  // namespace dyad::cli
