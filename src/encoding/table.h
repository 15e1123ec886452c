#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/types.h>

#include "base/name_index.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "encoding/row_encoder.h"
#include "encoding/target_scan.h"

namespace dyad {

/// Copy of the first rows of a table as text.
struct TableSample {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::int64_t> lines;  ///< line number of each row in the file, from 1
};

/// True if `pattern` is the column name, or a prefix of it followed by a star.
bool matches_pattern(const std::string& pattern, const std::string& name);

/// List of patterns as in matches_pattern(). Patterns without a star are found in constant time. Does not own the
/// patterns, which must outlive it.
class ColumnPatterns {
 public:
  explicit ColumnPatterns(const std::vector<std::string>& patterns);

  [[nodiscard]] bool matches(const std::string& name) const;

 private:
  NameIndex names_;
  std::vector<const std::string*> prefixes_;
};

/// Throws std::invalid_argument if a pattern matches no column of the header. `option` and `file` are for the message.
void require_columns(const std::vector<std::string>& header, const std::vector<std::string>& patterns,
                     const std::string& option, const std::string& file);

/// Counts the cells of a column to infer its role. The column is categorical if most cells that are not missing are not
/// numbers. Texts among a majority of numbers are errors in the data.
struct ColumnProfile {
  std::vector<double> values;  ///< numbers in the order of the rows; NaN: missing
  std::size_t number_count = 0;
  std::size_t text_count = 0;

  void add(std::string_view cell);
  [[nodiscard]] bool is_categorical() const { return text_count > number_count; }
};

/// Parses a cell of a numeric column; NaN if it is missing. Throws DataError for other texts. `is_training` selects the
/// advice in the message.
double parse_numeric_cell(std::string_view cell, const std::string& column, const InputLocation& location,
                          bool is_training);

/// Determines the target, the roles and the scales of the columns from the first rows. `scan` reads the targets of all
/// rows that can be read twice. It is called if the task is not given and the targets of the first rows are all equal.
/// Throws std::invalid_argument for options that name missing columns, and DataError for invalid cells.
void fit_table(FeatureMap& map, const ColumnOptions& options, const std::vector<std::string>& header,
               const TableSample& sample, const std::string& file, const std::function<void(TargetScan&)>& scan = {});

/// Encodes rows of text cells as features. Does not own the map. Not thread-safe.
class TableEncoder {
 public:
  enum class Targets { none, needed };  ///< whether rows must contain a target and a weight
  /// Treatment of categories and libsvm indices that are not in the map: `add` a feature (training), or `ignore` them
  /// and report unknown cells (prediction).
  enum class UnknownFeatures { add, ignore };

  /// Finds the columns of the map by name in the header of one file. Other columns are ignored.
  TableEncoder(FeatureMap& map, const std::vector<std::string>& header, const std::string& file, Targets targets,
               UnknownFeatures unknown);

  /// Prefetches the dictionary entries of a later row. Large dictionaries exceed the processor caches.
  void prefetch(const std::string_view* cells) const {
    for (const InputColumn& input : categorical_columns_) map_.prefetch(input.column, cells[input.cell]);
  }

  /// Appends one row. RowEncoder::finish() must be called after the last row of a block.
  void encode(const std::string_view* cells, std::int64_t line, RowBlock<double>& block);

 private:
  struct InputColumn {
    std::size_t cell;    ///< position in the rows of the file
    std::size_t column;  ///< position in FeatureMap::columns()
  };
  [[nodiscard]] InputLocation location_of(std::int64_t line, std::size_t cell) const {
    return {file_, line, static_cast<std::int64_t>(cell) + 1};
  }

  FeatureMap& map_;
  std::string file_;
  UnknownFeatures unknown_;
  RowEncoder row_encoder_;
  std::vector<InputColumn> input_columns_;        ///< one per column of the map
  std::vector<InputColumn> categorical_columns_;  ///< the categorical ones
  std::size_t target_cell_;                       ///< NameIndex::absent: none
  std::size_t weight_cell_;                       ///< NameIndex::absent: none
};

}  // namespace dyad
