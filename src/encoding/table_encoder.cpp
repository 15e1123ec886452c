#include "encoding/table_encoder.h"

#include <algorithm>
#include <stdexcept>

#include <dyad/error.h>

#include "base/name_index.h"
#include "base/text.h"
#include "encoding/table.h"
#include "io/csv.h"
#include "io/parse_number.h"

namespace dyad {

TableColumns::TableColumns(const FeatureMap& map, const std::vector<std::string>& header, const std::string& file,
                           Targets targets)
    : file_(file) {
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
    all_.push_back({find_cell(map.columns()[column].name, "as a feature"), column, categorical_.size()});
    if (map.columns()[column].role == Column::Role::categorical) categorical_.push_back(all_.back());
  }
}

TableEncoder::TableEncoder(FeatureMap& map, const TableColumns& columns, UnknownFeatures unknown, const Target* target)
    : map_(map), columns_(columns), unknown_(unknown), row_encoder_(map, false) {
  if (target != nullptr) target_ = *target;
  if (map.hash_bits > 0) return;
  for (const TableColumns::InputColumn& input : columns.categorical())
    dictionaries_.push_back(map.dictionary(input.column));
}

void TableEncoder::encode(const std::string_view* cells, std::int64_t line, EncodedRows& rows) {
  const bool is_training = unknown_ == UnknownFeatures::add;
  for (const TableColumns::InputColumn& input : columns_.all()) {
    const Column& column = map_.columns()[input.column];
    const std::string_view cell = cells[input.cell];
    if (column.role == Column::Role::numeric) {
      const InputLocation location = columns_.location(line, input.cell);
      row_encoder_.add_number(column, parse_numeric_cell(cell, column.name, location, is_training), location);
      continue;
    }
    const std::string_view category = is_missing(cell) ? std::string_view() : cell;
    if (const Index feature = find(input, category); feature != FeatureMap::unknown)
      row_encoder_.add_category(column, feature);
    else if (is_training)
      rows.new_categories.push_back({rows.rows.count(), input.column, category});
    else
      rows.rows.add_unknown_cell(map_.group_of_category(input.column));
  }
  row_encoder_.append_to(rows.rows);
  if (const auto cell = columns_.target_cell()) {
    if (target_)
      rows.rows.targets.push_back(target_->encode(cells[*cell], columns_.location(line, *cell)));
    else
      rows.target_cells.push_back(cells[*cell]);
  }
  if (const auto cell = columns_.weight_cell()) {
    double weight = 0;
    if (!parse_number(cells[*cell], weight) || !(weight >= 0 && weight <= max_weight))
      throw DataError(columns_.file(), line, static_cast<std::int64_t>(*cell) + 1,
                      "expected a weight of at least 0 (and up to 1e100) in the column '" + map_.weight + "', got " +
                          quote_text(cells[*cell]));
    rows.rows.weights.push_back(weight);
  }
  rows.rows.lines.push_back(line);
}

Index TableMerger::append(const EncodedRows& rows, Index first, const TableColumns& columns, const BlockLimits& limits,
                          RowBlock<double>& block) {
  const RowBlock<double>& from = rows.rows;
  const Index last = first + std::min(from.count() - first, limits.max_rows - block.count());
  const Index block_start = block.count() - first;
  auto category = std::lower_bound(rows.new_categories.begin(), rows.new_categories.end(), first,
                                   [](const auto& entry, Index row) { return entry.row < row; });
  Index row = first;
  while (row < last && !limits.are_reached_by(block)) {
    // Rows without new categories are copied at once.
    const Index known_end = category == rows.new_categories.end() ? last : std::min(last, category->row);
    if (row < known_end) {
      Index end = known_end;
      const Index max_entries = std::min(limits.max_entries - std::ssize(block.values), std::ssize(from.values) + 1);
      if (map_.is_dense()) {
        end = std::min(end, row + (max_entries + map_.dim() - 1) / map_.dim());
      } else {
        const auto offset = from.offsets.begin() + row;
        end = std::min<Index>(
            end, row + (std::lower_bound(offset, from.offsets.begin() + known_end, *offset + max_entries) - offset));
      }
      append_without_new_categories(from, row, end, block);
      for (; row < end; ++row) append_targets(rows, row, columns, block);
      continue;
    }
    for (auto e = static_cast<std::size_t>(from.offsets[static_cast<std::size_t>(row)]);
         e < static_cast<std::size_t>(from.offsets[static_cast<std::size_t>(row) + 1]); ++e)
      row_encoder_.add_encoded(from.columns[e], from.values[e]);
    for (; category != rows.new_categories.end() && category->row == row; ++category)
      row_encoder_.add_category(map_.columns()[category->column],
                                map_.encode_category(category->column, category->text, true));
    row_encoder_.append_to(block);
    append_targets(rows, row, columns, block);
    ++row;
  }
  auto cell = std::lower_bound(from.unknown_cells.begin(), from.unknown_cells.end(), first,
                               [](const UnknownCell& unknown, Index begin) { return unknown.row < begin; });
  for (; cell != from.unknown_cells.end() && cell->row < row; ++cell)
    block.unknown_cells.push_back({block_start + cell->row, cell->group});
  return row;
}

void TableMerger::append_without_new_categories(const RowBlock<double>& from, Index first, Index last,
                                                RowBlock<double>& block) {
  if (map_.is_dense()) {
    block.values.insert(block.values.end(), from.values.begin() + first * map_.dim(),
                        from.values.begin() + last * map_.dim());
    return;
  }
  const Index begin = from.offsets[static_cast<std::size_t>(first)];
  const Index end = from.offsets[static_cast<std::size_t>(last)];
  const Index shift = block.offsets.back() - begin;
  block.columns.insert(block.columns.end(), from.columns.begin() + begin, from.columns.begin() + end);
  block.values.insert(block.values.end(), from.values.begin() + begin, from.values.begin() + end);
  for (Index row = first + 1; row <= last; ++row)
    block.offsets.push_back(from.offsets[static_cast<std::size_t>(row)] + shift);
}

void TableMerger::append_targets(const EncodedRows& rows, Index row, const TableColumns& columns,
                                 RowBlock<double>& block) {
  const auto at = static_cast<std::size_t>(row);
  if (!rows.target_cells.empty())
    block.targets.push_back(
        map_.target.encode(rows.target_cells[at], columns.location(rows.rows.lines[at], *columns.target_cell())));
  else if (!rows.rows.targets.empty())
    block.targets.push_back(rows.rows.targets[at]);
  if (!rows.rows.weights.empty()) block.weights.push_back(rows.rows.weights[at]);
  block.lines.push_back(rows.rows.lines[at]);
}

}  // namespace dyad
