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

/// The names of a header for a message, shortened if there are many.
std::string join_names(const std::vector<std::string>& names);

}  // namespace dyad
