#include "effect_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "command.h"

namespace dyad::cli {
namespace {

/// Block characters of increasing height.
constexpr std::array<const char*, 8> heights{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
/// Shades of increasing density, for grids.
constexpr std::array<const char*, 5> shades{"·", "░", "▒", "▓", "█"};
/// Characters of a sparkline.
constexpr std::size_t max_sparkline_width = 24;
/// Rows and columns of a grid.
constexpr std::size_t max_grid_size = 8;
/// Number of pairs with a grid.
constexpr std::size_t max_grids = 5;

/// Positions that are shown of `count` positions, evenly spaced and with both ends.
std::vector<std::size_t> shown_positions(std::size_t count, std::size_t max_count) {
  std::vector<std::size_t> positions;
  const std::size_t shown = std::min(count, max_count);
  for (std::size_t i = 0; i < shown; ++i) positions.push_back(shown == 1 ? 0 : i * (count - 1) / (shown - 1));
  return positions;
}

template <std::size_t count>
const char* symbol(const std::array<const char*, count>& symbols, double value, double low, double high) {
  const double share = high > low ? (value - low) / (high - low) : 0;
  return symbols[std::min(count - 1, static_cast<std::size_t>(share * static_cast<double>(count)))];
}

std::string sparkline(const Effect& effect, double low, double high) {
  std::string line;
  for (const std::size_t i : shown_positions(effect.values.size(), max_sparkline_width))
    line += symbol(heights, effect.values[i], low, high);
  return line;
}

/// "lowest position to highest position" of an axis.
std::string describe_range(const EffectAxis& axis) {
  return fmt::format("{} to {}", escape_unprintable(axis.labels.front()), escape_unprintable(axis.labels.back()));
}

}  // namespace

std::string effect_text(const Inspection& inspection) {
  std::string lines;
  const auto add = [&]<typename... Values>(fmt::format_string<Values...> format, Values&&... values) {
    lines += fmt::format(format, std::forward<Values>(values)...) + "\n";
  };
  const std::string target = inspection.target.empty() ? "y" : escape_unprintable(inspection.target);
  add("anova for {}, {} functions of columns and pairs, trained on {} rows",
      inspection.task != Task::classification
          ? target
          : fmt::format("log-odds of {} = '{}'", target, escape_unprintable(inspection.positive)),
      inspection.effect_count,
      inspection.training.contains("rows") ? escape_unprintable(inspection.training.at("rows")) : "?");
  add("intercept {:.6g}", inspection.intercept);
  if (inspection.noise > 0) add("noise {:.4g} (standard deviation)", inspection.noise);
  const auto limits = [](const Effect& effect) {
    const auto [low, high] = std::minmax_element(effect.values.begin(), effect.values.end());
    return std::pair(*low, *high);
  };
  bool has_heading = false;
  for (const Effect& effect : inspection.effects) {
    if (effect.axes.size() != 1) continue;
    if (!std::exchange(has_heading, true)) add("\n{:>7} {:>10} {:>10}  columns", "share", "lowest", "highest");
    const auto [low, high] = limits(effect);
    add("{:>6.1f}% {:>10.4g} {:>10.4g}  {:<{}}  {} ({})", 100 * effect.share, low, high, sparkline(effect, low, high),
        max_sparkline_width, escape_unprintable(effect.axes[0].column), describe_range(effect.axes[0]));
  }
  has_heading = false;
  std::size_t grids = 0;
  for (const Effect& effect : inspection.effects) {
    if (effect.axes.size() != 2) continue;
    if (!std::exchange(has_heading, true)) add("\n{:>7} {:>10} {:>10}  pairs", "share", "lowest", "highest");
    const auto [low, high] = limits(effect);
    add("{:>6.1f}% {:>10.4g} {:>10.4g}  {} (down, {}) x {} (across, {})", 100 * effect.share, low, high,
        escape_unprintable(effect.axes[0].column), describe_range(effect.axes[0]),
        escape_unprintable(effect.axes[1].column), describe_range(effect.axes[1]));
    if (++grids > max_grids) continue;
    const std::size_t columns = effect.axes[1].labels.size();
    for (const std::size_t row : shown_positions(effect.axes[0].labels.size(), max_grid_size)) {
      std::string line;
      for (const std::size_t column : shown_positions(columns, max_grid_size)) {
        const char* cell = symbol(shades, effect.values[row * columns + column], low, high);
        line += std::string(cell) + cell;
      }
      add("{:>30}{}", "", line);
    }
  }
  add("\nshare: of the variance explained by all functions; lowest and highest: contribution to {}",
      inspection.task != Task::classification ? "the prediction" : "the log-odds");
  lines.pop_back();
  return lines;
}

nlohmann::ordered_json effect_json(const Inspection& inspection) {
  auto array = nlohmann::ordered_json::array();
  for (const Effect& effect : inspection.effects) {
    auto axes = nlohmann::ordered_json::array();
    for (const EffectAxis& axis : effect.axes) {
      auto positions = nlohmann::ordered_json::array();
      for (std::size_t i = 0; i < axis.knots.size(); ++i)
        if (std::isnan(axis.knots[i]))
          positions.push_back(axis.labels[i]);
        else
          positions.push_back(axis.knots[i]);
      axes.push_back({{"column", axis.column}, {"positions", std::move(positions)}});
    }
    array.push_back({{"axes", std::move(axes)},
                     {"share", effect.share},
                     {"values", effect.values},
                     {"standard_errors", effect.deviations}});
  }
  return array;
}

}  // namespace dyad::cli
