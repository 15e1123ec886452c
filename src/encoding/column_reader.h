#pragma once

#include <vector>

#include "data/column_table.h"
#include "encoding/feature_map.h"

namespace dyad {

/// Converts encoded rows of a table or matrix back to columns: scaled numbers with NaN for missing values, and the
/// features of categories. A missing number of a column without a missing-value indicator was encoded as the mean and
/// stays the mean. Numbers are clipped to the bounds that the map has at construction, which may have changed since the
/// rows were encoded. Does not own the map; the caller keeps it alive. Thread-safe.
class ColumnReader {
 public:
  explicit ColumnReader(const FeatureMap& map);

  /// Table without rows.
  [[nodiscard]] ColumnTable empty_table() const;
  /// Appends rows to a table of empty_table().
  template <typename Scalar>
  void append(const Rows<Scalar>& rows, ColumnTable& table) const;

 private:
  const FeatureMap& map_;
  std::vector<Index> columns_;  ///< column of each feature; -1: none
  std::vector<bool> is_missing_indicator_;
  std::vector<double> low_;  ///< bounds of each column, scaled
  std::vector<double> high_;
};

}  // namespace dyad
