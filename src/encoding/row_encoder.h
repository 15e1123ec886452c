#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"
#include "encoding/feature_map.h"

namespace dyad {

/// Encodes one row after the other as features of a map: numbers are checked and scaled, features of z are numbered
/// behind those of x. Refers to the map, which may grow between two rows.
class RowEncoder {
 public:
  /// `grows`: new indices become features.
  RowEncoder(FeatureMap& map, bool grows);

  /// A value of a numeric column; NaN is a missing value. Throws DataError for values beyond `largest_value`, and for
  /// missing values of measurements and of models of matrices.
  void add_number(const Column& column, double value, const Place& place);

  /// `feature`: counted within the side of its column.
  void add_category(const Column& column, Index feature) { put(column.right, feature, 1); }

  /// Completes the row. The columns of a sparse block have their final numbers after finish().
  void append_to(RowBlock<double>& block);

  /// Appends a row of numbers by position: column j of a table or matrix, or index j of sparse rows.
  template <typename Number>
  void append_dense(const Number* values, Index count, Index stride, const Place& place, RowBlock<double>& block) {
    if (is_by_index_) {
      for (Index j = 0; j < count; ++j, values += stride)
        if (*values != 0) add_index(j, static_cast<double>(*values), place, block);
    } else {
      for (const Column& column : map_.columns()) {
        add_number(column, static_cast<double>(*values), place);
        values += stride;
      }
    }
    append_to(block);
  }

  /// Replaces the indices of sparse rows, in rising order, by features. Missing entries of tables and matrices are 0.
  void encode_sparse(RowBlock<double>& block);

  /// Throws std::invalid_argument unless a row of `count` numbers has one for each column of the model.
  void require_columns(Index count, const std::string& name) const;

  /// Sets dim and left_dim, and numbers the features of z behind those of x.
  static void finish(const FeatureMap& map, RowBlock<double>& block);

 private:
  struct Entry {
    std::int32_t feature;  ///< of x; of z: its complement
    double value;
  };

  void put(bool right, Index feature, double value) {
    if (value == 0) return;
    if (is_dense_) {
      dense_row_[static_cast<std::size_t>(right ? left_dim_ + feature : feature)] = value;
      return;
    }
    const auto own = static_cast<std::int32_t>(feature);
    entries_.push_back({right ? ~own : own, value});
  }
  void add_index(std::int64_t index, double value, const Place& place, RowBlock<double>& block);
  void scatter(std::size_t row, const Place& place);

  FeatureMap& map_;
  bool grows_;
  bool is_by_index_;
  bool is_dense_;
  Index left_dim_;
  std::vector<double> dense_row_;  ///< of dense maps, which do not grow
  std::vector<Entry> entries_;     ///< of other maps
  RowBlock<double> raw_;           ///< the rows that encode_sparse() replaces
  std::vector<double> raw_row_;
};

}  // namespace dyad
