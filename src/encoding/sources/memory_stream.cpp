#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

#include <dyad/dataset.h>
#include <dyad/error.h>

#include "encoding/sources/streams.h"

namespace dyad {
namespace {

/// File name in messages about rows in memory.
const std::string memory_name = "the rows";

/// Base class of row sources in memory: targets and weights. Derived classes read the features.
class MemoryStream : public RowStream {
 public:
  MemoryStream(FeatureMap& map, const RowStreamOptions& options)
      : map_(map), rows_(*options.data.dataset), options_(options) {
    const auto count = static_cast<std::size_t>(rows_.count);
    if (needs_targets() && rows_.targets.size() != count)
      throw std::invalid_argument("DatasetView::targets must contain one target for each row");
    if (!rows_.weights.empty() && rows_.weights.size() != count)
      throw std::invalid_argument("DatasetView::weights must contain one weight for each row, or none");
    if (!rows_.labels.empty() && rows_.labels.size() != 2 && needs_targets() && !map.target.has_classes())
      throw std::invalid_argument("DatasetView::labels must contain at least two labels, or none");
    if (!std::all_of(rows_.weights.begin(), rows_.weights.end(), [](double w) { return w >= 0 && w <= max_weight; }))
      throw std::invalid_argument("weights must be at least 0, and finite (at most 1e100)");
    if (!map.is_fitted() && map.is_bilinear() && map.layout != Layout::table)
      set_right_range(map, options.columns.right);
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    block.clear();
    block.file = memory_name;
    if (!map_.is_fitted()) fit_by_first_rows(limits);
    for (; next_ < rows_.count && !limits.are_reached_by(block); ++next_) {
      if (!is_used(next_)) continue;
      read(next_, block);
      block.lines.push_back(next_ + 1);
      if (!needs_targets()) continue;
      if (!rows_.weights.empty()) block.weights.push_back(rows_.weights[static_cast<std::size_t>(next_)]);
      block.targets.push_back(encode_target(next_));
    }
    finish(block);
    if (map_.layout == Layout::sparse && block.count() > 0) densify_if_filled(block);
  }

 protected:
  [[nodiscard]] FeatureMap& map() { return map_; }
  [[nodiscard]] const ColumnOptions& columns() const { return options_.columns; }
  [[nodiscard]] Index min_feature_count() const { return options_.min_feature_count; }
  [[nodiscard]] bool may_grow() const { return options_.unknown == UnknownFeatures::add; }

  /// Indices and weights (empty: 1) of the first rows.
  struct FirstRows {
    std::vector<Index> rows;
    std::vector<double> weights;
  };
  /// Determines the columns of the map.
  virtual void fit_columns(const FirstRows& first) = 0;
  /// Appends the features of a row to the block.
  virtual void read(Index row, RowBlock<double>& block) = 0;
  /// Completes the block after its last row.
  virtual void finish(RowBlock<double>& block) { RowEncoder::finish(map_, block); }

  /// The map must be fitted.
  [[nodiscard]] RowEncoder& encoder() {
    if (!encoder_) encoder_.emplace(map_, may_grow());
    return *encoder_;
  }

  /// numbers[start + row * stride] for the given rows.
  static std::vector<double> gather(const RealPointer& numbers, Index start, Index stride,
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
  [[nodiscard]] bool needs_targets() const { return options_.targets == Targets::needed; }
  /// Training skips rows of weight 0; prediction uses all rows.
  [[nodiscard]] bool is_used(Index row) const {
    return !needs_targets() || rows_.weights.empty() || rows_.weights[static_cast<std::size_t>(row)] > 0;
  }

  [[nodiscard]] double encode_target(Index row) {
    const double y = rows_.targets[static_cast<std::size_t>(row)];
    if (!std::isfinite(y)) throw DataError(memory_name, row + 1, 0, "expected a finite target");
    const InputLocation location{memory_name, row + 1};
    if (map_.target.has_classes() && !rows_.labels.empty()) {
      if (!(y >= 0 && y < static_cast<double>(rows_.labels.size()) && y == std::floor(y)))
        throw DataError(memory_name, row + 1, 0, "expected the index of a label as the target");
      return map_.target.encode_class_index(static_cast<Index>(y));
    }
    return rows_.labels.empty() ? map_.target.encode(y, location)
                                : map_.target.encode(rows_.labels[y > 0 ? 1 : 0], location);
  }

  /// Determines the map from the first rows, up to `limits.max_rows`.
  void fit_by_first_rows(const BlockLimits& limits) {
    FirstRows first;
    std::vector<double> targets;
    for (Index row = next_; row < rows_.count && static_cast<Index>(first.rows.size()) < limits.max_rows; ++row) {
      if (!is_used(row)) continue;
      first.rows.push_back(row);
      if (!needs_targets()) continue;
      targets.push_back(rows_.targets[static_cast<std::size_t>(row)]);
      if (!rows_.weights.empty()) first.weights.push_back(rows_.weights[static_cast<std::size_t>(row)]);
    }
    if (first.rows.empty()) return;
    fit_columns(first);
    map_.target.name = columns().target;
    const Task task = columns().task.value_or(map_.target.task);
    if (!likelihood_of(task).is_classification()) map_.target.task = task;
    if (map_.target.has_classes()) return;
    if (rows_.labels.empty())
      fit_numeric_target(targets, first.weights);
    else
      map_.target.fit_labels(rows_.labels[0], rows_.labels[1]);
  }

  /// Uses the targets of the first rows, or of all rows if the first ones are all equal.
  void fit_numeric_target(std::vector<double> targets, std::vector<double> weights) {
    if (needs_targets() && std::adjacent_find(targets.begin(), targets.end(), std::not_equal_to<>()) == targets.end()) {
      targets.clear();
      weights.clear();
      for (Index row = 0; row < rows_.count; ++row) {
        const auto at = static_cast<std::size_t>(row);
        if (!is_used(row) || !std::isfinite(rows_.targets[at])) continue;
        targets.push_back(rows_.targets[at]);
        if (!rows_.weights.empty()) weights.push_back(rows_.weights[at]);
      }
    }
    map_.target.fit_numbers(targets, weights, !map_.is_measurement());
  }

  FeatureMap& map_;
  const DatasetView& rows_;
  RowStreamOptions options_;
  Index next_ = 0;
  std::optional<RowEncoder> encoder_;
};

/// Rows of a dense matrix.
class MatrixStream : public MemoryStream {
 public:
  MatrixStream(FeatureMap& map, const RowStreamOptions& options, const MatrixView& matrix)
      : MemoryStream(map, options), matrix_(matrix) {
    if (map.is_fitted()) encoder().require_columns(matrix.columns, memory_name);
  }

 protected:
  void fit_columns(const FirstRows& first) override {
    const auto column = [&](Index j) {
      return gather(matrix_.values, j * matrix_.column_stride, matrix_.row_stride, first.rows);
    };
    fit_numeric_columns(map(), matrix_.columns, column, first.weights, memory_name);
  }

  void read(Index row, RowBlock<double>& block) override {
    std::visit(
        [&](const auto* all) {
          encoder().append_dense(all + row * matrix_.row_stride, matrix_.columns, matrix_.column_stride,
                                 {memory_name, row + 1}, block);
        },
        matrix_.values);
  }

 private:
  const MatrixView& matrix_;
};

/// Rows of a sparse matrix in compressed row storage.
class SparseStream : public MemoryStream {
 public:
  SparseStream(FeatureMap& map, const RowStreamOptions& options, const SparseView& matrix)
      : MemoryStream(map, options), matrix_(matrix) {
    if (matrix.columns > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("there must be fewer than 2^31 columns");
    if (!map.is_fitted()) return;
    encoder().require_columns(matrix.columns, memory_name);
    add_all_columns();
  }

  void fill(RowBlock<double>& block, const BlockLimits& limits) override {
    MemoryStream::fill(block, limit_sparse_block(map(), limits));
  }

 protected:
  void fit_columns(const FirstRows&) override {
    map().set_columns({});
    add_all_columns();
  }

  void read(Index row, RowBlock<double>& block) override {
    std::visit(
        [&](const auto* offsets, const auto* indices, const auto* values) {
          std::int64_t previous = -1;
          for (auto e = offsets[row]; e < offsets[row + 1]; ++e) {
            const auto index = static_cast<std::int64_t>(indices[e]);
            if (index <= previous || index >= matrix_.columns)
              throw std::invalid_argument("the indices of row " + std::to_string(row + 1) +
                                          " must rise, and lie below the number of columns");
            previous = index;
            const auto value = static_cast<double>(values[e]);
            if (!(std::abs(value) <= max_abs_value) && !(std::isnan(value) && map().layout == Layout::table))
              throw DataError(memory_name, row + 1, 0, "expected finite numbers with a magnitude of at most 1e70");
            block.columns.push_back(static_cast<std::int32_t>(index));
            block.values.push_back(value);
          }
        },
        matrix_.offsets, matrix_.indices, matrix_.values);
    block.offsets.push_back(static_cast<Index>(block.values.size()));
  }

  void finish(RowBlock<double>& block) override { encoder().encode_sparse(block); }

 private:
  /// Adds a feature for each column, so that the number of features does not depend on the stored entries.
  void add_all_columns() {
    if (map().layout == Layout::sparse && may_grow() && matrix_.columns > 0)
      (void)map().encode_index(matrix_.columns - 1, true);
  }

  const SparseView& matrix_;
};

/// Rows of a table of named columns.
class ColumnStream : public MemoryStream {
 public:
  ColumnStream(FeatureMap& map, const RowStreamOptions& options, const std::vector<ColumnView>& columns)
      : MemoryStream(map, options), columns_(columns) {
    if (map.is_fitted()) find_columns();
  }

 protected:
  void fit_columns(const FirstRows& first) override {
    std::vector<Column> fitted_columns;
    const ColumnPatterns right(columns().right);
    for (const ColumnView& column : columns_) {
      Column result;
      result.name = column.name;
      result.role = column.is_categorical ? Column::Role::categorical : Column::Role::numeric;
      result.is_right = right.matches(result.name);
      if (!column.is_categorical && !map().is_measurement())
        result.fit_scaling(gather(column.numbers, 0, column.stride, first.rows), first.weights);
      fitted_columns.push_back(std::move(result));
    }
    set_min_feature_count(map(), static_cast<Index>(first.rows.size()), min_feature_count());
    map().set_columns(std::move(fitted_columns));
    find_columns();
  }

  void read(Index row, RowBlock<double>& block) override {
    for (InputColumn& input : inputs_) {
      const Column& column = map().columns()[input.column];
      if (column.role == Column::Role::categorical) {
        const Index feature = encode_category(input, input.view->codes[row]);
        if (feature == FeatureMap::unknown)
          block.add_unknown_cell(map().group_of_category(input.column));
        else
          encoder().add_category(column, feature);
        continue;
      }
      const double value = std::visit(
          [&](const auto* all) { return static_cast<double>(all[row * input.view->stride]); }, input.view->numbers);
      encoder().add_number(column, value, {memory_name, row + 1});
    }
    encoder().append_to(block);
  }

 private:
  struct InputColumn {
    const ColumnView* view;
    std::size_t column;           ///< position in FeatureMap::columns()
    std::vector<Index> features;  ///< feature of each category and, last, of a missing value; or `not_looked_up`
  };
  static constexpr Index not_looked_up = -2;  ///< differs from all features and from FeatureMap::unknown

  /// Finds the columns of the map by name. Other columns are ignored.
  void find_columns() {
    NameIndex positions;
    for (const ColumnView& column : columns_) (void)positions.add(column.name);
    for (std::size_t c = 0; c < map().columns().size(); ++c) {
      const Column& column = map().columns()[c];
      const std::size_t position = positions.find(column.name);
      if (position == NameIndex::absent)
        throw std::invalid_argument("there is no column '" + column.name + "', which the model needs");
      const ColumnView* found = &columns_[position];
      if (found->is_categorical != (column.role == Column::Role::categorical))
        throw std::invalid_argument("the column '" + column.name + "' must hold " +
                                    (found->is_categorical ? "numbers" : "categories") + ", as in training");
      inputs_.push_back({found, c, std::vector<Index>(found->categories.size() + 1, not_looked_up)});
    }
  }

  Index encode_category(InputColumn& input, std::int32_t code) {
    const auto& names = input.view->categories;
    const std::size_t position = code < 0 ? names.size() : static_cast<std::size_t>(code);
    Index& feature = input.features.at(position);
    if (feature == not_looked_up)
      feature = map().encode_category(input.column, code < 0 ? std::string_view() : std::string_view(names[position]),
                                      may_grow());
    return feature;
  }

  const std::vector<ColumnView>& columns_;
  std::vector<InputColumn> inputs_;
};

}  // namespace

std::unique_ptr<RowStream> open_memory(FeatureMap& map, const RowStreamOptions& options) {
  const auto& features = options.data.dataset->features;
  if (const auto* matrix = std::get_if<MatrixView>(&features))
    return std::make_unique<MatrixStream>(map, options, *matrix);
  if (const auto* sparse = std::get_if<SparseView>(&features))
    return std::make_unique<SparseStream>(map, options, *sparse);
  return std::make_unique<ColumnStream>(map, options, std::get<std::vector<ColumnView>>(features));
}

}  // namespace dyad
