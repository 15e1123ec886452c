#pragma once

#include <vector>

#include "features/feature_map.h"
#include "rows/block.h"

namespace dyad {

/// A row of numbers and categories on its way into a block.
class RowBuilder {
 public:
  /// The map is somebody else's.
  explicit RowBuilder(const FeatureMap& map) : map_(map), dense_(map.is_dense()) {}

  void number(const Column& column, double value) {
    put(column.right, column.number_feature, column.scaling.apply(value));
  }
  void missing_number(const Column& column) {
    if (column.marks_missing) put(column.right, column.missing_feature, 1);
  }
  void category(const Column& column, Index feature) { put(column.right, feature, 1); }

  /// `feature`: of its side.
  void put(bool right, Index feature, double value) {
    if (value == 0) return;
    const auto own = static_cast<std::int32_t>(feature);
    entries_.push_back({right ? ~own : own, value});
  }

  /// Appends the row. The columns of a sparse block wait for finish().
  void append_to(RowBlock<double>& block);

  /// Sets dim and left_dim, and puts the features of z behind those of x.
  static void finish(const FeatureMap& map, RowBlock<double>& block);

 private:
  struct Entry {
    std::int32_t feature;  ///< of x; of z: its complement
    double value;
  };

  const FeatureMap& map_;
  bool dense_;
  std::vector<Entry> entries_;
};

}  // namespace dyad
