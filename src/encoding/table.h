#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dyad/data.h>

#include "base/name_index.h"
#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "encoding/row_encoder.h"
#include "encoding/target_scan.h"

namespace dyad {

/// A table's rows as text, kept.
struct TableSample {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::int64_t> lines;
};

/// Whether a pattern, a name or the beginning of names and a star, means this column.
bool is_meant(const std::string& pattern, const std::string& name);

/// A list of such patterns. Names are found in constant time. Refers to the patterns, which must outlive it.
class ColumnPatterns {
 public:
  explicit ColumnPatterns(const std::vector<std::string>& patterns);

  [[nodiscard]] bool match(const std::string& name) const;

 private:
  NameIndex names_;
  std::vector<const std::string*> prefixes_;
};

/// Throws std::invalid_argument if a pattern, given with this option, matches no column of the file's header.
void require_columns(const std::vector<std::string>& header, const std::vector<std::string>& patterns,
                     const std::string& option, const std::string& file);

/// What the cells of a column look like. A few words among numbers are mistakes to be told about, not categories.
struct ColumnLook {
  std::vector<double> values;  ///< NaN: missing
  std::size_t numbers = 0;
  std::size_t texts = 0;

  void see(std::string_view cell);
  [[nodiscard]] bool is_category() const { return texts > numbers; }
};

/// The number in a cell of this column, NaN where it is missing. Throws DataError for anything else; `while_learning`
/// decides about the advice.
double number_in(std::string_view cell, const std::string& column, const Place& place, bool while_learning);

/// Decides from the first rows what the columns are: the target, numbers (where nothing else occurs) or categories,
/// with scales. `scan` reads the targets of all rows that can be read again; it is called if those of the first rows
/// are all the same. Throws std::invalid_argument for a column that is not there, DataError for rows that cannot be.
void fix_table(FeatureMap& map, const ColumnOptions& options, const std::vector<std::string>& header,
               const TableSample& sample, const std::string& file, const std::function<void(TargetScan&)>& scan = {});

/// Turns cells of text into features.
class TableEncoder {
 public:
  enum class Targets { none, needed };
  enum class Unknown { grows, is_left_out };

  /// Looks up the map's columns by name in the header of one file; other columns are passed over.
  TableEncoder(FeatureMap& map, const std::vector<std::string>& header, const std::string& file, Targets targets,
               Unknown unknown);

  /// Makes encoding quick for a row that will come soon: large dictionaries are far away.
  void prefetch(const std::string_view* cells) const {
    for (const Feed& feed : categories_) map_.prefetch(feed.column, cells[feed.cell]);
  }

  /// Appends one row. The columns of a sparse block wait for RowEncoder::finish().
  void encode(const std::string_view* cells, std::int64_t line, RowBlock<double>& block);

 private:
  struct Feed {
    std::size_t cell;    ///< in the file
    std::size_t column;  ///< of the map
  };
  [[nodiscard]] Place place(std::int64_t line, std::size_t cell) const {
    return {file_, line, static_cast<std::int64_t>(cell) + 1};
  }

  FeatureMap& map_;
  std::string file_;
  Unknown unknown_;
  RowEncoder row_;
  std::vector<Feed> feeds_;
  std::vector<Feed> categories_;  ///< those of them that have dictionaries
  std::size_t target_cell_;
  std::size_t weight_cell_;
};

}  // namespace dyad
