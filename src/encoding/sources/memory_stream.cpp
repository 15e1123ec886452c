#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

#include <dyad/data_error.h>
#include <dyad/memory.h>

#include "encoding/sources/streams.h"

namespace dyad {
namespace {

const std::string place_name = "the rows";

/// Rows in memory, whatever their features: targets, weights, and which rows count.
class MemoryStream : public RowStream {
 public:
  MemoryStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), rows_(*options.data.memory), options_(options) {
    const auto count = static_cast<std::size_t>(rows_.count);
    if (learns() && rows_.targets.size() != count) throw std::invalid_argument("there must be one target for each row");
    if (!rows_.weights.empty() && rows_.weights.size() != count)
      throw std::invalid_argument("there must be one weight for each row");
    if (!rows_.labels.empty() && rows_.labels.size() != 2) throw std::invalid_argument("there must be two classes");
    if (!std::all_of(rows_.weights.begin(), rows_.weights.end(), [](double w) { return w >= 0 && w <= 1e100; }))
      throw std::invalid_argument("weights must be at least 0, and finite");
    if (!map.is_fixed() && map.is_bilinear() && map.layout != Layout::table)
      set_right_range(map, options.columns.right);
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    block.file = place_name;
    if (!map_.is_fixed()) fix_by_first_rows(limits);
    for (; next_ < rows_.count && !limits.reached_by(block); ++next_) {
      if (!counts(next_)) continue;
      read(next_, block);
      block.lines.push_back(next_ + 1);
      if (!learns()) continue;
      if (!rows_.weights.empty()) block.weights.push_back(rows_.weights[static_cast<std::size_t>(next_)]);
      block.targets.push_back(target(next_));
    }
    finish(block);
    if (map_.layout == Layout::sparse && block.count() > 0) make_dense_where_worth_it(block);
  }

 protected:
  [[nodiscard]] FeatureMap& map() { return map_; }
  [[nodiscard]] const ColumnOptions& columns() const { return options_.columns; }
  [[nodiscard]] Index room() const { return options_.room; }
  [[nodiscard]] bool may_grow() const { return options_.unknown == Unknown::grows; }

  /// The first rows, and how often each counts (empty: once).
  struct First {
    std::vector<Index> rows;
    std::vector<double> weights;
  };
  /// Decides by them what the columns are.
  virtual void fix(const First& first) = 0;
  /// Appends the features of a row.
  virtual void read(Index row, RowBlock<double>& block) = 0;
  /// Completes a block.
  virtual void finish(RowBlock<double>& block) { RowEncoder::finish(map_, block); }

  /// Once the map is fixed.
  [[nodiscard]] RowEncoder& encoder() {
    if (!encoder_) encoder_.emplace(map_, may_grow());
    return *encoder_;
  }

  /// Numbers that lie `stride` apart, for some rows.
  static std::vector<double> gathered(const NumberPointer& numbers, Index start, Index stride,
                                      const std::vector<Index>& rows) {
    std::vector<double> values;
    std::visit(
        [&](const auto* all) {
          for (const Index row : rows) values.push_back(static_cast<double>(all[start + row * stride]));
        },
        numbers);
    return values;
  }

 private:
  [[nodiscard]] bool learns() const { return options_.targets == Targets::needed; }
  /// What is to be predicted is predicted whatever its weight.
  [[nodiscard]] bool counts(Index row) const {
    return !learns() || rows_.weights.empty() || rows_.weights[static_cast<std::size_t>(row)] > 0;
  }

  [[nodiscard]] double target(Index row) {
    const double y = rows_.targets[static_cast<std::size_t>(row)];
    if (!std::isfinite(y)) throw DataError(place_name, row + 1, 0, "expected a finite target");
    const Place place{place_name, row + 1};
    return rows_.labels.empty() ? map_.target.encode(y, place) : map_.target.encode(rows_.labels[y > 0 ? 1 : 0], place);
  }

  void fix_by_first_rows(const BlockLimits& limits) {
    First first;
    std::vector<double> targets;
    for (Index row = next_; row < rows_.count && static_cast<Index>(first.rows.size()) < limits.rows; ++row) {
      if (!counts(row)) continue;
      first.rows.push_back(row);
      if (!learns()) continue;
      targets.push_back(rows_.targets[static_cast<std::size_t>(row)]);
      if (!rows_.weights.empty()) first.weights.push_back(rows_.weights[static_cast<std::size_t>(row)]);
    }
    if (first.rows.empty()) return;
    fix(first);
    map_.target.name = columns().target;
    const Task task = columns().task.value_or(map_.target.task);
    if (!likelihood_of(task).is_classification()) map_.target.task = task;
    if (rows_.labels.empty())
      fix_numbers_of_target(targets, first.weights);
    else
      map_.target.fix_labels(rows_.labels[0], rows_.labels[1]);
  }

  /// By the first rows, or by all if the targets of the first ones are all the same.
  void fix_numbers_of_target(std::vector<double> targets, std::vector<double> weights) {
    if (learns() && std::adjacent_find(targets.begin(), targets.end(), std::not_equal_to<>()) == targets.end()) {
      targets.clear();
      weights.clear();
      for (Index row = 0; row < rows_.count; ++row) {
        const auto at = static_cast<std::size_t>(row);
        if (!counts(row) || !std::isfinite(rows_.targets[at])) continue;
        targets.push_back(rows_.targets[at]);
        if (!rows_.weights.empty()) weights.push_back(rows_.weights[at]);
      }
    }
    map_.target.fix_numbers(targets, weights, !map_.is_measurement());
  }

  FeatureMap& map_;
  const MemoryRows& rows_;
  RowStreamOptions options_;
  Index next_ = 0;
  std::optional<RowEncoder> encoder_;
};

class MatrixStream : public MemoryStream {
 public:
  MatrixStream(FeatureMap& map, const RowStreamOptions& options, const MemoryMatrix& matrix)
      : MemoryStream(map, options), matrix_(matrix) {
    if (map.is_fixed()) encoder().require_columns(matrix.columns, place_name);
  }

 protected:
  void fix(const First& first) override {
    const auto column = [&](Index j) {
      return gathered(matrix_.values, j * matrix_.column_stride, matrix_.row_stride, first.rows);
    };
    fix_numbers(map(), matrix_.columns, column, first.weights, place_name);
  }

  void read(Index row, RowBlock<double>& block) override {
    std::visit(
        [&](const auto* all) {
          encoder().append_dense(all + row * matrix_.row_stride, matrix_.columns, matrix_.column_stride,
                                 {place_name, row + 1}, block);
        },
        matrix_.values);
  }

 private:
  const MemoryMatrix& matrix_;
};

class SparseStream : public MemoryStream {
 public:
  SparseStream(FeatureMap& map, const RowStreamOptions& options, const MemorySparse& matrix)
      : MemoryStream(map, options), matrix_(matrix) {
    if (matrix.columns > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("there must be fewer than 2^31 columns");
    if (!map.is_fixed()) return;
    encoder().require_columns(matrix.columns, place_name);
    make_room_for_all();
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    MemoryStream::fill(block, sparse_limits(map(), limits));
  }

 protected:
  void fix(const First&) override {
    map().fix({});
    make_room_for_all();
  }

  void read(Index row, RowBlock<double>& block) override {
    std::visit(
        [&](const auto* offsets, const auto* indices, const auto* values) {
          std::int64_t before = -1;
          for (auto e = offsets[row]; e < offsets[row + 1]; ++e) {
            const auto index = static_cast<std::int64_t>(indices[e]);
            if (index <= before || index >= matrix_.columns)
              throw std::invalid_argument("the indices of a row must rise, and lie below the number of columns");
            before = index;
            const auto value = static_cast<double>(values[e]);
            if (!(std::abs(value) <= largest_value) && !(std::isnan(value) && map().layout == Layout::table))
              throw DataError(place_name, row + 1, 0, "expected finite numbers up to 1e70 in size");
            block.columns.push_back(static_cast<std::int32_t>(index));
            block.values.push_back(value);
          }
        },
        matrix_.offsets, matrix_.indices, matrix_.values);
    block.offsets.push_back(static_cast<Index>(block.values.size()));
  }

  void finish(RowBlock<double>& block) override { encoder().encode_sparse(block); }

 private:
  void make_room_for_all() {
    if (map().layout == Layout::sparse && may_grow() && matrix_.columns > 0)
      (void)map().indexed(matrix_.columns - 1, true);
  }

  const MemorySparse& matrix_;
};

class ColumnStream : public MemoryStream {
 public:
  ColumnStream(FeatureMap& map, const RowStreamOptions& options, const std::vector<MemoryColumn>& columns)
      : MemoryStream(map, options), columns_(columns) {
    if (map.is_fixed()) find_columns();
  }

 protected:
  void fix(const First& first) override {
    std::vector<Column> described;
    const ColumnPatterns right(columns().right);
    for (const MemoryColumn& column : columns_) {
      Column own;
      own.name = column.name;
      own.role = column.is_category ? Column::Role::category : Column::Role::number;
      own.right = right.match(own.name);
      if (!column.is_category && !map().is_measurement())
        own.fit_numbers(gathered(column.numbers, 0, column.stride, first.rows), first.weights);
      described.push_back(std::move(own));
    }
    make_room(map(), static_cast<Index>(first.rows.size()), room());
    map().fix(std::move(described));
    find_columns();
  }

  void read(Index row, RowBlock<double>& block) override {
    for (Feed& feed : feeds_) {
      const Column& column = map().columns()[feed.column];
      if (column.role == Column::Role::category) {
        const Index feature = category(feed, feed.from->codes[row]);
        if (feature == FeatureMap::unknown)
          block.add_unknown_cell(map().group_of_category(feed.column));
        else
          encoder().add_category(column, feature);
        continue;
      }
      const double value = std::visit(
          [&](const auto* all) { return static_cast<double>(all[row * feed.from->stride]); }, feed.from->numbers);
      encoder().add_number(column, value, {place_name, row + 1});
    }
    encoder().append_to(block);
  }

 private:
  struct Feed {
    const MemoryColumn* from;
    std::size_t column;           ///< of the map
    std::vector<Index> features;  ///< of the categories, and of what is missing; `not_asked`: not looked up yet
  };
  static constexpr Index not_asked = -2;

  /// Columns that the model does not know are passed over.
  void find_columns() {
    NameIndex positions;
    for (const MemoryColumn& column : columns_) (void)positions.add(column.name);
    for (std::size_t c = 0; c < map().columns().size(); ++c) {
      const Column& column = map().columns()[c];
      const std::size_t position = positions.find(column.name);
      if (position == NameIndex::absent)
        throw std::invalid_argument("there is no column '" + column.name + "', which the model needs");
      const MemoryColumn* found = &columns_[position];
      if (found->is_category != (column.role == Column::Role::category))
        throw std::invalid_argument("the column '" + column.name + "' must hold " +
                                    (found->is_category ? "numbers" : "categories") + ", as in training");
      feeds_.push_back({found, c, std::vector<Index>(found->categories.size() + 1, not_asked)});
    }
  }

  Index category(Feed& feed, std::int32_t code) {
    const auto& names = feed.from->categories;
    const std::size_t place = code < 0 ? names.size() : static_cast<std::size_t>(code);
    Index& feature = feed.features.at(place);
    if (feature == not_asked)
      feature = map().category(feed.column, code < 0 ? std::string_view() : std::string_view(names[place]), may_grow());
    return feature;
  }

  const std::vector<MemoryColumn>& columns_;
  std::vector<Feed> feeds_;
};

}  // namespace

std::unique_ptr<RowStream> open_memory(FeatureMap& map, const RowStreamOptions& options) {
  const auto& features = options.data.memory->features;
  if (const auto* matrix = std::get_if<MemoryMatrix>(&features))
    return std::make_unique<MatrixStream>(map, options, *matrix);
  if (const auto* sparse = std::get_if<MemorySparse>(&features))
    return std::make_unique<SparseStream>(map, options, *sparse);
  return std::make_unique<ColumnStream>(map, options, std::get<std::vector<MemoryColumn>>(features));
}

}  // namespace dyad
