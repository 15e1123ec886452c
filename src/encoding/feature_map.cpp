#include "encoding/feature_map.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/stable_hash.h"
#include "base/text.h"

namespace dyad {
namespace {

constexpr Index bits_per_byte = 8;

std::size_t bytes_for(Index bits) { return static_cast<std::size_t>((bits + bits_per_byte - 1) / bits_per_byte); }

bool has_bit(const std::vector<std::uint8_t>& bytes, Index bit) {
  return (bytes[static_cast<std::size_t>(bit / bits_per_byte)] >> (bit % bits_per_byte) & 1U) != 0;
}

}  // namespace

void Column::fit_scaling(const std::vector<double>& first_values, std::span<const double> weights) {
  std::vector<double> numbers;
  std::vector<double> number_weights;
  for (std::size_t i = 0; i < first_values.size(); ++i) {
    if (std::isnan(first_values[i])) continue;
    numbers.push_back(first_values[i]);
    if (!weights.empty()) number_weights.push_back(weights[i]);
  }
  has_missing_indicator = numbers.size() < first_values.size();
  scaling = robust_scaling(numbers, number_weights);
}

void FeatureMap::require_layout(Layout rows, const std::string& name) const {
  const auto fail = [&](const std::string& message) { throw std::invalid_argument(name + ": " + message); };
  if (rows == layout) return;
  if (rows == Layout::table)
    fail(std::string("the model was trained on ") + (layout == Layout::matrix ? "a matrix" : "sparse rows") +
         ", whose columns have no names; expected an array or sparse rows, such as npy or libsvm");
  if (layout != Layout::table) return;
  for (const Column& column : columns_)
    if (column.role == Column::Role::categorical)
      fail("the model was trained on a table with the categorical column " + quote_text(column.name) +
           ", but the input has only numbers; expected a table with the columns of the training data");
}

void FeatureMap::set_columns(std::vector<Column> columns) {
  if (has_squares()) {
    for (Column& column : columns)
      if (column.role == Column::Role::numeric) column.values.emplace();
    if (has_sparse_numbers()) has_other_values_.emplace();
  }
  assign_features(std::move(columns));
  for (const Side side : {Side::left, Side::right}) used_slots_[index_of(side)].assign(slot_bytes(side), 0);
}

std::size_t FeatureMap::slot_bytes(Side side) const {
  return bytes_for(hash_bits > 0 ? counts_[index_of(side)] - first_category_[index_of(side)] : 0);
}

void FeatureMap::assign_features(std::vector<Column> columns) {
  columns_ = std::move(columns);
  dictionaries_.resize(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].role == Column::Role::categorical && hash_bits == 0)
      dictionaries_[c] = std::make_unique<Dictionary>();
  std::array<bool, 2> has_categories{layout == Layout::sparse, layout == Layout::sparse && is_bilinear()};
  for (auto& columns_of_side : column_of_) columns_of_side.clear();
  const auto new_feature = [&](std::size_t column) {
    auto& columns_of_side = column_of_[index_of(side_of(columns_[column]))];
    columns_of_side.push_back(column);
    return static_cast<Index>(columns_of_side.size()) - 1;
  };
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].role == Column::Role::numeric)
      columns_[c].number_feature = new_feature(c);
    else
      has_categories[index_of(side_of(columns_[c]))] = true;
  }
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (columns_[c].has_missing_indicator) columns_[c].missing_feature = new_feature(c);
  two_valued_columns_.clear();
  for (std::size_t c = 0; c < columns_.size() && has_squares(); ++c)
    if (columns_[c].values) two_valued_columns_.push_back(c);
  for (const Side side : {Side::left, Side::right}) {
    counts_[index_of(side)] = static_cast<Index>(column_of_[index_of(side)].size());
    first_category_[index_of(side)] = counts_[index_of(side)];
    if (hash_bits > 0 && has_categories[index_of(side)]) counts_[index_of(side)] += Index{1} << hash_bits;
    grows_[index_of(side)] = hash_bits == 0 && has_categories[index_of(side)];
  }
  is_fitted_ = true;
}

bool FeatureMap::is_dense() const {
  return layout != Layout::sparse && std::all_of(columns_.begin(), columns_.end(), [](const Column& column) {
           return column.role == Column::Role::numeric;
         });
}

Index FeatureMap::encode_category(std::size_t column, std::string_view text, bool grow) {
  const std::size_t side = index_of(side_of(columns_[column]));
  if (hash_bits > 0) return find_slot(side, stable_hash(text, column), grow);
  Dictionary& dictionary = *dictionaries_[column];
  if (const Index found = dictionary.find(text); found != Dictionary::absent) return found;
  if (!grow) return unknown;
  category_texts_[side].push_back(dictionary.add(text, counts_[side]));
  category_columns_[side].push_back(static_cast<std::int32_t>(column));
  return counts_[side]++;
}

Index FeatureMap::find_hashed(std::size_t column, std::string_view text) const {
  const std::size_t side = index_of(side_of(columns_[column]));
  const Index slot = slot_of(stable_hash(text, column));
  return is_slot_used(side, slot) ? first_category_[side] + slot : unknown;
}

bool FeatureMap::is_slot_used(std::size_t side, Index slot) const {
  const std::vector<std::uint8_t>& bytes = used_slots_[side];
  if (bytes.empty()) return true;
  auto& byte = const_cast<std::uint8_t&>(bytes[static_cast<std::size_t>(slot / bits_per_byte)]);
  return (std::atomic_ref(byte).load(std::memory_order_relaxed) >> (slot % bits_per_byte) & 1U) != 0;
}

void FeatureMap::use_slot(std::size_t side, Index slot) {
  std::atomic_ref byte(used_slots_[side][static_cast<std::size_t>(slot / bits_per_byte)]);
  byte.store(static_cast<std::uint8_t>(byte.load(std::memory_order_relaxed) | 1U << (slot % bits_per_byte)),
             std::memory_order_relaxed);
}

Index FeatureMap::find_slot(std::size_t side, std::uint64_t hash, bool grow) {
  const Index slot = slot_of(hash);
  if (!is_slot_used(side, slot)) {
    if (!grow) return unknown;
    use_slot(side, slot);
  }
  return first_category_[side] + slot;
}

bool FeatureMap::is_used(Index feature) const {
  const Side side = feature < count(Side::left) ? Side::left : Side::right;
  const std::vector<std::uint8_t>& bytes = used_slots_[index_of(side)];
  const Index slot = feature - (side == Side::left ? 0 : count(Side::left)) - first_category_[index_of(side)];
  return bytes.empty() || slot < 0 || has_bit(bytes, slot);
}

std::vector<std::uint8_t> FeatureMap::used_slots() const {
  std::vector<std::uint8_t> bytes = used_slots_[0];
  bytes.insert(bytes.end(), used_slots_[1].begin(), used_slots_[1].end());
  return bytes;
}

bool FeatureMap::restore_used_slots(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() != slot_bytes(Side::left) + slot_bytes(Side::right)) return false;
  const auto middle = bytes.begin() + static_cast<std::ptrdiff_t>(slot_bytes(Side::left));
  used_slots_[0].assign(bytes.begin(), middle);
  used_slots_[1].assign(middle, bytes.end());
  return true;
}

std::pair<FeatureMap::Side, Index> FeatureMap::encode_index(std::int64_t index, bool grow) {
  const bool right = is_bilinear() && index >= right_first;
  const Side side = right ? Side::right : Side::left;
  const std::size_t s = index_of(side);
  if (hash_bits > 0)
    return {side, find_slot(s, stable_hash({reinterpret_cast<const char*>(&index), sizeof(index)}, 0), grow)};
  const Index feature = index - (right ? right_first : index_base);
  if (feature >= counts_[s]) {
    if (!grow) return {side, unknown};
    counts_[s] = feature + 1;
  }
  return {side, feature};
}

std::string FeatureMap::name(Index feature) const {
  const Side side = feature < count(Side::left) ? Side::left : Side::right;
  const Index index = feature - (side == Side::left ? 0 : count(Side::left));
  if (index < first_category_[index_of(side)]) {
    const Column& column = columns_[column_of_[index_of(side)][static_cast<std::size_t>(index)]];
    return column.number_feature == index ? column.name : column.name + " is missing";
  }
  if (hash_bits > 0) return "hash " + std::to_string(index - first_category_[index_of(side)]);
  if (layout == Layout::sparse) return std::to_string(index + (side == Side::left ? index_base : right_first));
  if (index >= counts_[index_of(side)]) return "(unused)";
  const auto [column, text] = category(side, index - first_category_[index_of(side)]);
  return columns_[column].name + (text.empty() ? " is missing" : "=" + escape_invalid_utf8(text));
}

void FeatureMap::set_clipping(std::size_t column, double low, double high) {
  Scaling& scaling = columns_[column].scaling;
  const auto unscale = [&](double bound) {
    constexpr double largest = std::numeric_limits<double>::max();
    return std::clamp(scaling.center + scaling.scale * bound, -largest, largest);
  };
  const double old_low = std::exchange(scaling.low, unscale(low));
  const double old_high = std::exchange(scaling.high, unscale(high));
  if (scaling.low != old_low || scaling.high != old_high) ++clipping_changes_;
}

std::vector<Scaling> FeatureMap::scalings() const {
  std::vector<Scaling> all(static_cast<std::size_t>(dim()));
  for (const Column& column : columns_)
    if (column.role == Column::Role::numeric)
      all[static_cast<std::size_t>(column.number_feature + (column.is_right ? count(Side::left) : 0))] = column.scaling;
  return all;
}

std::vector<Index> FeatureMap::indicator_columns() const {
  std::vector<Index> result(static_cast<std::size_t>(dim()), -1);
  const auto offset = [&](Side side) { return side == Side::right ? count(Side::left) : 0; };
  for (const Side side : {Side::left, Side::right}) {
    const std::vector<std::int32_t>& columns = category_columns_[index_of(side)];
    std::copy(columns.begin(), columns.end(), result.begin() + offset(side) + first_category_[index_of(side)]);
  }
  for (std::size_t column = 0; column < columns_.size(); ++column)
    if (const Index indicator = columns_[column].missing_feature; indicator >= 0)
      result[static_cast<std::size_t>(offset(side_of(columns_[column])) + indicator)] = static_cast<Index>(column);
  return result;
}

void FeatureMap::update_values(const RowBlock<double>& block) {
  const auto first = static_cast<std::size_t>(first_category_[0]);
  if (has_other_values_) has_other_values_->resize(static_cast<std::size_t>(counts_[0]) - first);
  const auto record = [&](std::size_t feature, double value) {
    if (value != 0 && value != 1 && feature >= first) (*has_other_values_)[feature - first] = true;
  };
  if (block.is_dense) {
    const auto dim = static_cast<std::size_t>(block.dim);
    update_values_of_columns(block.values.data(), block.lines.size(), dim);
    for (std::size_t i = 0; i < block.lines.size() && has_other_values_; ++i)
      for (std::size_t j = 0; j < dim; ++j) record(j, block.values[i * dim + j]);
    return;
  }
  for (std::size_t i = 0; i < block.lines.size() && !two_valued_columns_.empty(); ++i) {
    row_.assign(first, 0);
    // The entries of a row are sorted by feature.
    for (auto e = static_cast<std::size_t>(block.offsets[i]); e < static_cast<std::size_t>(block.offsets[i + 1]); ++e) {
      const auto feature = static_cast<std::size_t>(block.columns[e]);
      if (feature >= first) break;
      row_[feature] = block.values[e];
    }
    update_values_of_columns(row_.data(), 1, first);
  }
  for (std::size_t e = 0; e < block.values.size() && has_other_values_; ++e)
    record(static_cast<std::size_t>(block.columns[e]), block.values[e]);
}

void FeatureMap::update_values_of_columns(const double* rows, std::size_t count, std::size_t stride) {
  std::erase_if(two_valued_columns_, [&](std::size_t c) {
    Column& column = columns_[c];
    TwoValues values = *column.values;
    for (const double* row = rows; row != rows + count * stride; row += stride) {
      if (column.missing_feature >= 0 && row[column.missing_feature] != 0) continue;
      if (values.add(row[column.number_feature])) continue;
      column.values.reset();
      return true;
    }
    column.values = values;
    return false;
  });
}

void FeatureMap::clear_values() {
  for (Column& column : columns_) column.values.reset();
  two_valued_columns_.clear();
  has_other_values_.reset();
}

std::vector<FeatureMap::LinearSquare> FeatureMap::linear_squares() const {
  std::vector<LinearSquare> result;
  const std::vector<Index> indicators = indicator_columns();
  for (Index j = 0; j < count(Side::left); ++j)
    if (indicators[static_cast<std::size_t>(j)] >= 0) result.push_back({.feature = j});
  for (const std::size_t c : two_valued_columns_) {
    const Column& column = columns_[c];
    if (!column.values->is_full()) continue;
    const double a = column.values->first();
    const double b = column.values->second();
    result.push_back({column.number_feature, a + b, -a * b, column.missing_feature});
  }
  for (Index j = 0; j < sparse_number_count(); ++j)
    if (is_binary(j)) result.push_back({.feature = first_category_[0] + j});
  return result;
}

bool FeatureMap::is_binary(Index sparse_number) const {
  const auto at = static_cast<std::size_t>(sparse_number);
  return has_other_values_ && (at >= has_other_values_->size() || !(*has_other_values_)[at]);
}

std::vector<std::uint8_t> FeatureMap::binary_features() const {
  if (!has_other_values_) return {};
  std::vector<std::uint8_t> bytes(bytes_for(sparse_number_count()));
  for (Index j = 0; j < sparse_number_count(); ++j)
    if (is_binary(j))
      bytes[static_cast<std::size_t>(j / bits_per_byte)] |= static_cast<std::uint8_t>(1U << (j % bits_per_byte));
  return bytes;
}

bool FeatureMap::restore_binary_features(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() != bytes_for(sparse_number_count())) return false;
  has_other_values_.emplace(static_cast<std::size_t>(sparse_number_count()));
  for (Index j = 0; j < sparse_number_count(); ++j)
    (*has_other_values_)[static_cast<std::size_t>(j)] = !has_bit(bytes, j);
  return true;
}

std::vector<Index> FeatureMap::feature_groups() const {
  std::vector<Index> groups = indicator_columns();
  if (hash_bits == 0 && layout != Layout::sparse) return groups;
  for (const Side side : {Side::left, Side::right}) {
    const Index first = side == Side::right ? count(Side::left) : 0;
    for (Index j = first + first_category_[index_of(side)]; j < first + count(side); ++j)
      groups[static_cast<std::size_t>(j)] = group_of(j);
  }
  return groups;
}

Index FeatureMap::group_of(Index feature) const {
  const Side side = is_bilinear() && feature >= left_dim() ? Side::right : Side::left;
  const Index index = (side == Side::right ? feature - left_dim() : feature) - first_category_[index_of(side)];
  if (index < 0) return group_of_numbers();
  if (has_sparse_numbers()) return hash_bits > 0 ? group_of_side(side) : group_of_index(side, index + index_base);
  const std::vector<std::int32_t>& columns = category_columns_[index_of(side)];
  return index < std::ssize(columns) ? Index{columns[static_cast<std::size_t>(index)]} : group_of_numbers();
}

PriorGroups FeatureMap::prior_groups() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) names.push_back(column.name);
  names.insert(names.end(), {"x", "z", "numbers"});
  if (index_groups) names.insert(names.end(), index_groups->names().begin(), index_groups->names().end());
  std::vector<std::int32_t> groups;
  for (Index j = 0; j < dim(); ++j) groups.push_back(static_cast<std::int32_t>(group_of(j)));
  return PriorGroups(std::move(names), std::move(groups));
}

void FeatureMap::restore(std::vector<Column> columns, Index left_count, Index right_count,
                         const std::vector<std::pair<std::size_t, std::string>>& categories) {
  assign_features(std::move(columns));
  for (const auto& [column, text] : categories) {
    if (!dictionaries_[column]) dictionaries_[column] = std::make_unique<Dictionary>();
    (void)encode_category(column, text, true);
  }
  if (layout != Layout::sparse || hash_bits > 0) return;
  counts_[0] = left_count;
  counts_[1] = right_count;
}

}  // namespace dyad
