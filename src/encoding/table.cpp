#include "encoding/table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/text.h>

#include "base/text.h"
#include "io/csv.h"
#include "io/parse_number.h"

namespace dyad {

bool is_meant(const std::string& pattern, const std::string& name) {
  return pattern == name || (pattern.ends_with('*') && name.starts_with(pattern.substr(0, pattern.size() - 1)));
}

ColumnPatterns::ColumnPatterns(const std::vector<std::string>& patterns) : names_(patterns) {
  for (const std::string& pattern : patterns)
    if (pattern.ends_with('*')) prefixes_.push_back(&pattern);
}

bool ColumnPatterns::match(const std::string& name) const {
  return names_.find(name) != NameIndex::absent ||
         std::any_of(prefixes_.begin(), prefixes_.end(), [&](const auto* prefix) { return is_meant(*prefix, name); });
}

namespace {

constexpr std::size_t nowhere = NameIndex::absent;

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 20;
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < most; ++i) list += (i > 0 ? ", " : "") + escape_unprintable(names[i]);
  return names.size() > most ? list + ", ..." : list;
}

[[noreturn]] void refuse_column(const std::vector<std::string>& header, const std::string& name,
                                const std::string& option, const std::string& file) {
  throw std::invalid_argument(file + " has no column '" + name + "', which " + option + " names; its columns are " +
                              listed(header));
}

void require_column(const std::vector<std::string>& header, const std::string& name, const std::string& option,
                    const std::string& file) {
  if (std::find(header.begin(), header.end(), name) == header.end()) refuse_column(header, name, option, file);
}

/// A column of numbers or categories, from what the first rows have in it.
Column told_column(const FeatureMap& map, const std::string& name, bool categorical, const TableSample& sample,
                   std::size_t cell) {
  Column column;
  column.name = name;
  ColumnLook look;
  for (const auto& row : sample.rows) look.see(row[cell]);
  column.role = categorical || look.is_category() ? Column::Role::category : Column::Role::number;
  if (column.role == Column::Role::category) return column;
  if (!map.is_measurement()) column.fit_numbers(look.values);
  return column;
}

}  // namespace

void require_columns(const std::vector<std::string>& header, const std::vector<std::string>& patterns,
                     const std::string& option, const std::string& file) {
  const NameIndex names(header);
  for (const std::string& pattern : patterns)
    if (names.find(pattern) == NameIndex::absent &&
        std::none_of(header.begin(), header.end(), [&](const auto& name) { return is_meant(pattern, name); }))
      refuse_column(header, pattern, option, file);
}

void ColumnLook::see(std::string_view cell) {
  double value = 0;
  if (is_missing(cell)) {
    values.push_back(std::numeric_limits<double>::quiet_NaN());
  } else if (parse_number(cell, value)) {
    values.push_back(value);
    ++numbers;
  } else {
    ++texts;
  }
}

double number_in(std::string_view cell, const std::string& column, const Place& place, bool while_learning) {
  double value = 0;
  const bool is_number = parse_number(cell, value);
  if (is_number && std::abs(value) <= largest_value) return value;
  if (is_missing(cell)) return std::numeric_limits<double>::quiet_NaN();
  const char* expected = is_number ? "a finite number (up to 1e70; rescale the column)"
                         : while_learning
                             ? "a number, as in most rows (if it holds categories, name it as categorical),"
                             : "a number, as the model has learned it,";
  throw DataError(
      place.file, place.line, place.column,
      std::string("expected ") + expected + " in the column " + in_quotes(column) + ", got " + in_quotes(cell));
}

void fix_table(FeatureMap& map, const ColumnOptions& options, const std::vector<std::string>& header,
               const TableSample& sample, const std::string& file, const std::function<void(TargetScan&)>& scan) {
  if (options.target.empty())
    throw std::invalid_argument("say which column is to be predicted, with --target; the columns of " + file + " are " +
                                listed(header));
  require_column(header, options.target, "--target", file);
  require_columns(header, options.categorical, "--categorical", file);
  require_columns(header, options.ignored, "--ignore", file);
  require_columns(header, options.right, "--right", file);
  if (!options.weight.empty()) require_column(header, options.weight, "--weight", file);

  const auto target_cell =
      static_cast<std::size_t>(std::find(header.begin(), header.end(), options.target) - header.begin());
  std::vector<Target::Sample> targets;
  for (std::size_t i = 0; i < sample.rows.size(); ++i)
    targets.emplace_back(sample.rows[i][target_cell], sample.lines[i]);
  map.target.name = options.target;
  fix_by_scan(map.target, std::move(targets), options.task, !map.is_measurement(),
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
    const bool is_ignored = ignored.match(name);
    if (is_target || is_weight || is_ignored) {
      if (right.match(name) || categorical.match(name) || is_target + is_weight + is_ignored > 1)
        throw std::invalid_argument("the column '" + name + "' is named twice, with different meanings");
      continue;
    }
    columns.push_back(told_column(map, name, categorical.match(name), sample, cell));
    columns.back().right = right.match(name);
  }
  if (columns.empty()) throw std::invalid_argument(file + " has no column to predict '" + options.target + "' from");
  const auto rights = std::count_if(columns.begin(), columns.end(), [](const Column& column) { return column.right; });
  if (map.is_bilinear() && (rights == 0 || rights == static_cast<std::ptrdiff_t>(columns.size())))
    throw std::invalid_argument(
        "a bilinear model needs columns on both sides: name those of the second factor, and not all, with --right");
  map.fix(std::move(columns));
}

TableEncoder::TableEncoder(FeatureMap& map, const std::vector<std::string>& header, const std::string& file,
                           Targets targets, Unknown unknown)
    : map_(map),
      file_(file),
      unknown_(unknown),
      row_(map, unknown == Unknown::grows),
      target_cell_(nowhere),
      weight_cell_(nowhere) {
  const NameIndex cells(header);
  const auto cell_of = [&](const std::string& name, const char* what) {
    const std::size_t cell = cells.find(name);
    if (cell == nowhere)
      throw std::invalid_argument(file + " has no column '" + name + "', which the model needs " + what +
                                  "; its columns are " + listed(header));
    return cell;
  };
  if (targets == Targets::needed) target_cell_ = cell_of(map.target.name, "as its target");
  if (targets == Targets::needed && !map.weight.empty()) weight_cell_ = cell_of(map.weight, "as its weight");
  for (std::size_t column = 0; column < map.columns().size(); ++column) {
    feeds_.push_back({cell_of(map.columns()[column].name, "as a feature"), column});
    if (map.columns()[column].role == Column::Role::category) categories_.push_back(feeds_.back());
  }
}

void TableEncoder::encode(const std::string_view* cells, std::int64_t line, RowBlock<double>& block) {
  for (const Feed& feed : feeds_) {
    const Column& column = map_.columns()[feed.column];
    const std::string_view cell = cells[feed.cell];
    if (column.role == Column::Role::number) {
      const Place at = place(line, feed.cell);
      row_.add_number(column, number_in(cell, column.name, at, unknown_ == Unknown::grows), at);
      continue;
    }
    const std::string_view category = is_missing(cell) ? std::string_view() : cell;
    const Index feature = map_.category(feed.column, category, unknown_ == Unknown::grows);
    if (feature == FeatureMap::unknown)
      block.add_unknown_cell(map_.group_of_category(feed.column));
    else
      row_.add_category(column, feature);
  }
  row_.append_to(block);
  if (target_cell_ != nowhere)
    block.targets.push_back(map_.target.encode(cells[target_cell_], place(line, target_cell_)));
  if (weight_cell_ != nowhere) {
    double weight = 0;
    if (!parse_number(cells[weight_cell_], weight) || !(weight >= 0 && weight <= 1e100))
      throw DataError(file_, line, static_cast<std::int64_t>(weight_cell_) + 1,
                      "expected a weight of at least 0 (and up to 1e100) in the column '" + map_.weight + "', got " +
                          in_quotes(cells[weight_cell_]));
    block.weights.push_back(weight);
  }
  block.lines.push_back(line);
}

}  // namespace dyad
