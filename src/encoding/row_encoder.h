#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/row_block.h"
#include "encoding/feature_map.h"

namespace dyad {

/// Largest row weight. The sum of the squared weights of 2^63 rows is then finite: 1e200 * 9.2e18 < 1.8e308.
inline constexpr double max_weight = 1e100;

/// Encodes rows as features of a map. Numbers are checked and scaled. In bilinear models, features of z follow the
/// features of x. Does not own the map, to which features may be added between two rows. Not thread-safe.
class RowEncoder {
 public:
  /// `adds_features`: unknown indices of sparse rows become new features; false: they become unknown cells.
  RowEncoder(FeatureMap& map, bool adds_features);

  /// Adds a value of a numeric column to the current row; NaN is a missing value. Throws DataError for magnitudes above
  /// `max_abs_value`, and for missing values in measurements and in models of matrices.
  void add_number(const Column& column, double value, const InputLocation& location);

  /// Adds a category to the current row. `feature`: index within the side (x or z) of its column.
  void add_category(const Column& column, Index feature) { add_entry(column.is_right, feature, 1); }

  /// Adds an entry of a sparse row that append_to() has appended to another block, before finish().
  void add_encoded(std::int32_t feature, double value) { entries_.push_back({feature, value}); }

  /// Appends the current row to the block and starts the next one. The column indices of a sparse block are final only
  /// after finish().
  void append_to(RowBlock<double>& block);

  /// Appends a row of numbers by position: values[j * stride] is column j of a table or matrix, or index j of sparse
  /// rows.
  template <typename Number>
  void append_dense(const Number* values, Index count, Index stride, const InputLocation& location,
                    RowBlock<double>& block) {
    if (is_by_index_) {
      for (Index j = 0; j < count; ++j, values += stride)
        if (*values != 0) add_index(j, static_cast<double>(*values), location, block);
    } else {
      for (const Column& column : map_.columns()) {
        add_number(column, static_cast<double>(*values), location);
        values += stride;
      }
    }
    append_to(block);
  }

  /// Replaces the indices of sparse rows by features. The indices of a row must be in increasing order. If the model
  /// was trained on a table or matrix, index j is column j, and absent entries are 0.
  void encode_sparse(RowBlock<double>& block);

  /// Throws std::invalid_argument unless `count` is the number of columns of the model. Models of sparse rows accept
  /// any number. `name`: the input, for the message.
  void require_columns(Index count, const std::string& name) const;

  /// Sets is_dense, dim and left_dim of the block, and shifts the features of z behind the features of x.
  static void finish(const FeatureMap& map, RowBlock<double>& block);

 private:
  struct Entry {
    std::int32_t feature;  ///< index within its side; for z the bitwise complement, which is negative
    double value;
  };

  void add_entry(bool is_right, Index feature, double value) {
    if (value == 0) return;
    if (is_dense_) {
      dense_row_[static_cast<std::size_t>(is_right ? left_dim_ + feature : feature)] = value;
      return;
    }
    const auto index = static_cast<std::int32_t>(feature);
    entries_.push_back({is_right ? ~index : index, value});
  }
  void add_index(std::int64_t index, double value, const InputLocation& location, RowBlock<double>& block);
  void scatter(std::size_t row, const InputLocation& location);

  FeatureMap& map_;
  bool adds_features_;
  bool is_by_index_;               ///< the model was trained on sparse rows
  bool is_dense_;                  ///< as FeatureMap::is_dense()
  Index left_dim_;                 ///< of a dense map, which has a fixed number of features
  std::vector<double> dense_row_;  ///< the current row of a dense map
  std::vector<Entry> entries_;     ///< the current row of other maps
  RowBlock<double> raw_;           ///< rows of encode_sparse() before encoding
  std::vector<double> raw_row_;    ///< one row of `raw_`, dense
};

}  // namespace dyad
