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

namespace {

std::string join_names(const std::vector<std::string>& names) {
  constexpr std::size_t max_names = 20;  // keeps messages about wide tables short
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < max_names; ++i)
    list += (i > 0 ? ", " : "") + escape_unprintable(names[i]);
  return names.size() > max_names ? list + ", ..." : list;
}

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

TableEncoder::TableEncoder(FeatureMap& map, const std::vector<std::string>& header, const std::string& file,
                           Targets targets, UnknownFeatures unknown)
    : map_(map),
      file_(file),
      unknown_(unknown),
      row_encoder_(map, unknown == UnknownFeatures::add),
      target_cell_(NameIndex::absent),
      weight_cell_(NameIndex::absent) {
  const NameIndex cells(header);
  const auto find_cell = [&](const std::string& name, const char* role) {
    const std::size_t cell = cells.find(name);
    if (cell == NameIndex::absent)
      throw std::invalid_argument(file + " has no column '" + name + "', which the model needs " + role +
                                  "; its columns are " + join_names(header));
    return cell;
  };
  if (targets == Targets::needed) target_cell_ = find_cell(map.target.name, "as its target");
  if (targets == Targets::needed && !map.weight.empty()) weight_cell_ = find_cell(map.weight, "as its weight");
  for (std::size_t column = 0; column < map.columns().size(); ++column) {
    input_columns_.push_back({find_cell(map.columns()[column].name, "as a feature"), column});
    if (map.columns()[column].role == Column::Role::categorical) categorical_columns_.push_back(input_columns_.back());
  }
}

void TableEncoder::encode(const std::string_view* cells, std::int64_t line, RowBlock<double>& block) {
  for (const InputColumn& input : input_columns_) {
    const Column& column = map_.columns()[input.column];
    const std::string_view cell = cells[input.cell];
    if (column.role == Column::Role::numeric) {
      const InputLocation location = location_of(line, input.cell);
      row_encoder_.add_number(column, parse_numeric_cell(cell, column.name, location, unknown_ == UnknownFeatures::add),
                              location);
      continue;
    }
    const std::string_view category = is_missing(cell) ? std::string_view() : cell;
    const Index feature = map_.encode_category(input.column, category, unknown_ == UnknownFeatures::add);
    if (feature == FeatureMap::unknown)
      block.add_unknown_cell(map_.group_of_category(input.column));
    else
      row_encoder_.add_category(column, feature);
  }
  row_encoder_.append_to(block);
  if (target_cell_ != NameIndex::absent)
    block.targets.push_back(map_.target.encode(cells[target_cell_], location_of(line, target_cell_)));
  if (weight_cell_ != NameIndex::absent) {
    double weight = 0;
    if (!parse_number(cells[weight_cell_], weight) || !(weight >= 0 && weight <= max_weight))
      throw DataError(file_, line, static_cast<std::int64_t>(weight_cell_) + 1,
                      "expected a weight of at least 0 (and up to 1e100) in the column '" + map_.weight + "', got " +
                          quote_text(cells[weight_cell_]));
    block.weights.push_back(weight);
  }
  block.lines.push_back(line);
}

}  // namespace dyad
