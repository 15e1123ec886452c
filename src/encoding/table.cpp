#include "encoding/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <dyad/error.h>
#include <dyad/text.h>

#include "base/text.h"
#include "io/csv.h"
#include "io/parse_number.h"

namespace dyad {

bool matches_pattern(const std::string& pattern, const std::string& name) {
  return pattern == name || (pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1)));
}

ColumnPatterns::ColumnPatterns(const std::vector<std::string>& patterns) : names_(patterns) {
  for (const std::string& pattern : patterns)
    if (pattern.ends_with('*')) prefixes_.push_back(&pattern);
}

bool ColumnPatterns::matches(const std::string& name) const {
  return names_.find(name) != NameIndex::absent ||
         std::any_of(prefixes_.begin(), prefixes_.end(),
                     [&](const auto* prefix) { return matches_pattern(*prefix, name); });
}

std::string join_names(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 20;  // keeps messages about wide tables short
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < max_names; ++i)
    list += (i > 0 ? ", " : "") + escape_unprintable(names[i]);
  return names.size() > max_names ? list + ", ..." : list;
}

namespace {

[[noreturn]] void throw_missing_column(const std::vector<std::string>& header, const std::string& name,
                                       const std::string& option, const std::string& file) {
  throw std::invalid_argument(file + " has no column '" + name + "', which " + option + " names; its columns are " +
                              join_names(header));
}

void require_column(const std::vector<std::string>& header, const std::string& name, const std::string& option,
                    const std::string& file) {
  if (std::find(header.begin(), header.end(), name) == header.end()) throw_missing_column(header, name, option, file);
}

/// Determines the role and the scaling of a column from its cells in the first rows.
Column infer_column(const FeatureMap& map, const std::string& name, bool is_categorical, const TableSample& sample,
                    std::size_t cell) {
  Column column;
  column.name = name;
  ColumnProfile profile;
  for (const auto& row : sample.rows) profile.add(row[cell]);
  column.role = is_categorical || profile.is_categorical() ? Column::Role::categorical : Column::Role::numeric;
  if (column.role == Column::Role::categorical) return column;
  if (!map.is_measurement()) column.fit_scaling(profile.values);
  return column;
}

}  // namespace

void require_columns(const std::vector<std::string>& header, const std::vector<std::string>& patterns,
                     const std::string& option, const std::string& file) {
  const NameIndex names(header);
  for (const std::string& pattern : patterns)
    if (names.find(pattern) == NameIndex::absent &&
        std::none_of(header.begin(), header.end(), [&](const auto& name) { return matches_pattern(pattern, name); }))
      throw_missing_column(header, pattern, option, file);
}

void ColumnProfile::add(std::string_view cell) {
  double value = 0;
  if (is_missing(cell)) {
    values.push_back(std::numeric_limits<double>::quiet_NaN());
  } else if (parse_number(cell, value)) {
    values.push_back(value);
    ++number_count;
  } else {
    ++text_count;
  }
}

double parse_numeric_cell(std::string_view cell, const std::string& column, const InputLocation& location,
                          bool is_training) {
  double value = 0;
  const bool is_number = parse_number(cell, value);
  if (is_number && std::abs(value) <= max_abs_value) return value;
  if (is_missing(cell)) return std::numeric_limits<double>::quiet_NaN();
  const char* expected = is_number ? "a finite number (up to 1e70; rescale the column)" : "a number";
  const char* remedy = is_number || !is_training ? ""
                                                 : " (leave the cell empty if the value is missing, or declare the "
                                                   "column in `categorical`)";
  throw DataError(location.file, location.line, location.column,
                  std::string("expected ") + expected + " in the column " + quote_text(column) +
                      (is_training ? "" : ", as in training") + ", got " + quote_text(cell) + remedy);
}

void fit_table(FeatureMap& map, const ColumnOptions& options, const std::vector<std::string>& header,
               const TableSample& sample, const std::string& file, const std::function<void(TargetScan&)>& scan) {
  if (options.target.empty())
    throw std::invalid_argument(
        "the target is not set: name the column to predict in ColumnOptions::target; the columns of " + file + " are " +
        join_names(header));
  require_column(header, options.target, "ColumnOptions::target", file);
  require_columns(header, options.categorical, "ColumnOptions::categorical", file);
  require_columns(header, options.ignored, "ColumnOptions::ignored", file);
  require_columns(header, options.right, "ColumnOptions::right", file);
  if (!options.weight.empty()) require_column(header, options.weight, "ColumnOptions::weight", file);

  const auto target_cell =
      static_cast<std::size_t>(std::find(header.begin(), header.end(), options.target) - header.begin());
  std::vector<Target::Sample> targets;
  for (std::size_t i = 0; i < sample.rows.size(); ++i)
    targets.emplace_back(sample.rows[i][target_cell], sample.lines[i]);
  map.target.name = options.target;
  fit_target_by_scan(map.target, std::move(targets), options.task, !map.is_measurement(),
                     {file, 0, static_cast<std::int64_t>(target_cell) + 1}, scan);
  map.weight = options.weight;

  const ColumnPatterns ignored(options.ignored);
  const ColumnPatterns categorical(options.categorical);
  const ColumnPatterns right(options.right);
  std::vector<Column> columns;
  for (std::size_t cell = 0; cell < header.size(); ++cell) {
    const std::string& name = header[cell];
    const bool is_target = name == options.target;
    const bool is_weight = name == options.weight;
    const bool is_ignored = ignored.matches(name);
    if (is_target || is_weight || is_ignored) {
      if (right.matches(name) || categorical.matches(name) || is_target + is_weight + is_ignored > 1)
        throw std::invalid_argument("the column '" + name +
                                    "' is named twice, with different meanings; name it in one option only");
      continue;
    }
    columns.push_back(infer_column(map, name, categorical.matches(name), sample, cell));
    columns.back().is_right = right.matches(name);
  }
  if (columns.empty()) throw std::invalid_argument(file + " has no column to predict '" + options.target + "' from");
  const auto right_count =
      std::count_if(columns.begin(), columns.end(), [](const Column& column) { return column.is_right; });
  if (map.is_bilinear() && (right_count == 0 || right_count == static_cast<std::ptrdiff_t>(columns.size())))
    throw std::invalid_argument(
        "a bilinear model x'Mz needs columns of x and of z: name the columns of z, but not all columns, in "
        "ColumnOptions::right");
  map.set_columns(std::move(columns));
}

}  // namespace dyad
