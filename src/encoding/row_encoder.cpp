#include "encoding/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <dyad/error.h>

#include "base/text.h"
#include "io/parse_number.h"

namespace dyad {

RowEncoder::RowEncoder(FeatureMap& map, bool adds_features)
    : map_(map),
      adds_features_(adds_features),
      is_by_index_(map.layout == Layout::sparse),
      is_dense_(map.is_dense()),
      left_dim_(is_dense_ ? map.left_dim() : 0),
      dense_row_(is_dense_ ? static_cast<std::size_t>(map.dim()) : 0) {}

void RowEncoder::add_number(const Column& column, double value, const InputLocation& location) {
  if (std::abs(value) <= max_abs_value)
    return add_entry(column.is_right, column.number_feature, column.scaling.apply(value));
  const bool is_missing = std::isnan(value);
  if (is_missing && map_.layout == Layout::table && !map_.is_measurement()) {
    if (column.has_missing_indicator) add_entry(column.is_right, column.missing_feature, 1);
    return;
  }
  throw DataError(location.file, location.line, location.column,
                  std::string("expected a ") +
                      (is_missing ? "finite number (this model does not accept missing values)"
                                  : "finite number (up to 1e70; rescale the column)") +
                      " in the column " + quote_text(column.name) + ", got " + format_shortest(value));
}

void RowEncoder::add_index(std::int64_t index, double value, const InputLocation& location, RowBlock<double>& block) {
  const auto expect = [&](bool holds, const char* relation, Index bound) {
    if (!holds)
      throw DataError(
          location.file, location.line, 0,
          std::string("expected an index ") + relation + std::to_string(bound) + ", got " + std::to_string(index));
  };
  expect(index >= map_.index_base, "of at least ", map_.index_base);
  expect(map_.right_last < 0 || index <= map_.right_last, "up to ", map_.right_last);
  if (adds_features_ && map_.index_groups && !map_.has_group(index))
    throw DataError(location.file, location.line, 0,
                    "expected an index with a line in the file of groups, whose " +
                        std::to_string(map_.index_groups->feature_count()) + " lines are for the indices from " +
                        std::to_string(map_.index_base) + " on, got " + std::to_string(index) +
                        (map_.index_base == 0 ? " (if the smallest index is 1, set `index_base` to 1)" : ""));
  const auto [side, feature] = map_.encode_index(index, adds_features_);
  if (feature == FeatureMap::unknown)
    block.add_unknown_cell(map_.group_of_index(side, index));
  else
    add_entry(side == FeatureMap::Side::right, feature, value);
}

void RowEncoder::append_to(RowBlock<double>& block) {
  if (is_dense_) {
    block.values.insert(block.values.end(), dense_row_.begin(), dense_row_.end());
    std::fill(dense_row_.begin(), dense_row_.end(), 0.0);
    return;
  }
  // Sort by feature, x before z. Values of the same hashed feature are added.
  const auto feature_less = [](const Entry& a, const Entry& b) {
    const bool is_a_right = a.feature < 0;
    const bool is_b_right = b.feature < 0;
    if (is_a_right != is_b_right) return is_b_right;
    return is_a_right ? a.feature > b.feature : a.feature < b.feature;
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(), feature_less))
    std::sort(entries_.begin(), entries_.end(), feature_less);
  const auto begin = static_cast<std::size_t>(block.offsets.back());
  for (const Entry& entry : entries_) {
    if (block.columns.size() > begin && block.columns.back() == entry.feature) {
      block.values.back() += entry.value;
      continue;
    }
    block.columns.push_back(entry.feature);
    block.values.push_back(entry.value);
  }
  block.offsets.push_back(static_cast<Index>(block.values.size()));
  entries_.clear();
}

/// Writes row `row` of `raw_` to `raw_row_`, one number for each column of the model.
void RowEncoder::scatter(std::size_t row, const InputLocation& location) {
  raw_row_.assign(map_.columns().size(), 0.0);
  for (auto e = static_cast<std::size_t>(raw_.offsets[row]); e < static_cast<std::size_t>(raw_.offsets[row + 1]); ++e) {
    const auto index = static_cast<std::size_t>(raw_.columns[e]);
    if (index >= raw_row_.size())
      throw DataError(location.file, location.line, 0,
                      "expected an index below " + std::to_string(raw_row_.size()) +
                          ", the number of columns of the model (index j is column j), got " + std::to_string(index));
    raw_row_[index] = raw_.values[e];
  }
}

void RowEncoder::encode_sparse(RowBlock<double>& block) {
  if (is_by_index_ && !map_.is_bilinear() && map_.hash_bits == 0 && map_.index_base == 0) {
    // Indices equal features if all are known. Encoding the largest one adds all features up to it.
    const auto largest = std::max_element(block.columns.begin(), block.columns.end());
    const bool needs_check =
        adds_features_ && map_.index_groups && largest != block.columns.end() && !map_.has_group(*largest);
    if (!needs_check &&
        (largest == block.columns.end() || map_.encode_index(*largest, adds_features_).second != FeatureMap::unknown))
      return finish(map_, block);
  }
  std::swap(raw_, block);
  block.clear();
  block.file.swap(raw_.file);
  block.targets.swap(raw_.targets);
  block.weights.swap(raw_.weights);
  for (std::size_t i = 0; i < raw_.lines.size(); ++i) {
    const InputLocation location{block.file, raw_.lines[i]};
    if (is_by_index_) {
      for (auto e = static_cast<std::size_t>(raw_.offsets[i]); e < static_cast<std::size_t>(raw_.offsets[i + 1]); ++e)
        add_index(raw_.columns[e], raw_.values[e], location, block);
      append_to(block);
    } else {
      scatter(i, location);
      append_dense(raw_row_.data(), static_cast<Index>(raw_row_.size()), 1, location, block);
    }
    block.lines.push_back(raw_.lines[i]);
  }
  finish(map_, block);
}

void RowEncoder::require_columns(Index count, const std::string& name) const {
  if (!is_by_index_ && count != static_cast<Index>(map_.columns().size()))
    throw std::invalid_argument(name + ": expected " + std::to_string(map_.columns().size()) +
                                " columns, as in training, got " + std::to_string(count));
}

void RowEncoder::finish(const FeatureMap& map, RowBlock<double>& block) {
  block.is_dense = map.is_dense();
  block.dim = map.dim();
  block.left_dim = map.left_dim();
  const auto left = static_cast<std::int32_t>(map.left_dim());
  for (std::int32_t& column : block.columns)
    if (column < 0) column = left + ~column;
}

}  // namespace dyad
