#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "encoding/row_encoder.h"

namespace dyad {

/// Positions of the columns of a map in the rows of one file. Immutable.
class TableColumns {
 public:
  enum class Targets { none, needed };  ///< whether rows must contain a target and a weight

  struct InputColumn {
    std::size_t cell;         ///< position in the rows of the file
    std::size_t column;       ///< position in FeatureMap::columns()
    std::size_t categorical;  ///< position in categorical(), if the column is categorical
  };

  /// Finds the columns of the map by name in the header of a file. Other columns are ignored. Throws
  /// std::invalid_argument if the file lacks a column.
  TableColumns(const FeatureMap& map, const std::vector<std::string>& header, const std::string& file, Targets targets);

  /// One per column of the map.
  [[nodiscard]] const std::vector<InputColumn>& all() const { return all_; }
  /// The categorical ones.
  [[nodiscard]] const std::vector<InputColumn>& categorical() const { return categorical_; }
  [[nodiscard]] std::optional<std::size_t> target_cell() const { return target_cell_; }
  [[nodiscard]] std::optional<std::size_t> weight_cell() const { return weight_cell_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] InputLocation location(std::int64_t line, std::size_t cell) const {
    return {file_, line, static_cast<std::int64_t>(cell) + 1};
  }

 private:
  std::string file_;
  std::vector<InputColumn> all_;
  std::vector<InputColumn> categorical_;
  std::optional<std::size_t> target_cell_;
  std::optional<std::size_t> weight_cell_;
};

/// Rows of a table that TableEncoder has encoded and TableMerger has not appended to a block. Refers to the text of the
/// rows.
struct EncodedRows {
  /// A category that was absent from the map when the row was encoded.
  struct NewCategory {
    Index row;
    std::size_t column;
    std::string_view text;
  };

  RowBlock<double> rows;  ///< without entries of new categories; column indices as before RowEncoder::finish()
  std::vector<NewCategory> new_categories;     ///< sorted by row, then in the order of the columns of the map
  std::vector<std::string_view> target_cells;  ///< one per row if the targets are not encoded; else empty

  void clear() {
    rows.clear();
    new_categories.clear();
    target_cells.clear();
  }
};

/// Encodes rows of text cells as features. Does not modify the map and does not own its arguments. Not thread-safe, but
/// several encoders may encode rows in several threads while another thread appends encoded rows with a TableMerger.
class TableEncoder {
 public:
  using Targets = TableColumns::Targets;
  /// Treatment of categories and libsvm indices that are not in the map: `add` a feature (training), or `ignore` them
  /// and report unknown cells (prediction).
  enum class UnknownFeatures { add, ignore };

  /// `target`: encodes the targets and does not change any more (Target::is_settled()). nullptr: TableMerger encodes
  /// the targets.
  TableEncoder(FeatureMap& map, const TableColumns& columns, UnknownFeatures unknown, const Target* target);

  /// Prefetches the dictionary entries of a later row. Large dictionaries exceed the processor caches.
  void prefetch(const std::string_view* cells) const {
    for (std::size_t i = 0; i < dictionaries_.size(); ++i)
      dictionaries_[i].prefetch(cells[columns_.categorical()[i].cell]);
  }

  /// Appends one row.
  void encode(const std::string_view* cells, std::int64_t line, EncodedRows& rows);

 private:
  [[nodiscard]] Index find(const TableColumns::InputColumn& input, std::string_view category) const {
    return dictionaries_.empty() ? map_.find_hashed(input.column, category)
                                 : dictionaries_[input.categorical].find(category);
  }

  const FeatureMap& map_;
  const TableColumns& columns_;
  UnknownFeatures unknown_;
  RowEncoder row_encoder_;
  std::optional<Target> target_;
  std::vector<Dictionary::Reader> dictionaries_;  ///< of the categorical columns; empty with hashing
};

/// Appends encoded rows to blocks, in the order of the input: adds new categories to the map, and encodes targets. Does
/// not own the map. Not thread-safe.
class TableMerger {
 public:
  explicit TableMerger(FeatureMap& map) : map_(map), row_encoder_(map, true) {}

  /// Appends the rows from `first` on until the limits are reached. Returns the first row that is not appended.
  /// RowEncoder::finish() must be called after the last row of a block.
  Index append(const EncodedRows& rows, Index first, const TableColumns& columns, const BlockLimits& limits,
               RowBlock<double>& block);

 private:
  void append_without_new_categories(const RowBlock<double>& from, Index first, Index last, RowBlock<double>& block);
  void append_targets(const EncodedRows& rows, Index row, const TableColumns& columns, RowBlock<double>& block);

  FeatureMap& map_;
  RowEncoder row_encoder_;
};

}  // namespace dyad
