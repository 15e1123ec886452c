#pragma once

#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Rows of a table, stored by column. Numeric columns contain scaled numbers; NaN is a missing value. Categorical
/// columns contain category numbers (features of the categories); a negative number is a category without a feature.
struct ColumnTable {
  struct Column {
    bool is_categorical = false;
    std::vector<double> values;
  };

  std::vector<Column> columns;

  [[nodiscard]] Index count() const { return columns.empty() ? 0 : static_cast<Index>(columns.front().values.size()); }
};

}  // namespace dyad
