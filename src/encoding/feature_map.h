#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/rows.h>
#include <dyad/shape.h>
#include <dyad/types.h>

#include "data/prior_groups.h"
#include "data/row_block.h"
#include "encoding/dictionary.h"
#include "encoding/scaling.h"
#include "encoding/target.h"
#include "encoding/two_values.h"

namespace dyad {

/// A column of the input and its features: one number with an optional missing-value indicator, or one indicator per
/// category.
struct Column {
  enum class Role { numeric, categorical };

  std::string name;
  Role role = Role::numeric;
  bool is_right = false;               ///< bilinear models: the column belongs to z instead of x
  Scaling scaling;                     ///< numeric columns
  bool has_missing_indicator = false;  ///< numeric columns: the first rows contain missing values
  /// Numeric columns: the distinct scaled values of all training rows. Missing values are excluded if the column has a
  /// missing-value indicator. nullopt: more than two values, or unknown.
  std::optional<TwoValues> values;

  Index number_feature = -1;   ///< index within its side (x or z); -1: none
  Index missing_feature = -1;  ///< index of the missing-value indicator within its side; -1: none

  /// Sets `scaling` and `has_missing_indicator` from the values of the first rows, where NaN is a missing value, and
  /// their weights (empty: 1).
  void fit_scaling(const std::vector<double>& first_values, std::span<const double> weights = {});
};

/// Maps columns to features: roles, scales, category dictionaries and the target. A model file contains it. The first
/// rows of a training run determine the columns. Categories and libsvm indices are added as they occur, always at the
/// end of their side. The sides are the features of x and of z; symmetric models have only x (`Side::left`).
///
/// Order of the features of a side: numbers, missing-value indicators, then categories, hash slots or libsvm indices.
/// Concurrent calls are safe unless one of them adds features. Exceptions, for threads that encode rows while one other
/// thread adds features: columns(), dictionary(), find_hashed() and is_dense().
class FeatureMap {
 public:
  FeatureMap() = default;
  FeatureMap(FeatureMap&&) = default;
  FeatureMap& operator=(FeatureMap&&) = default;

  enum class Side : std::uint8_t { left, right };

  Layout layout = Layout::table;
  Kind kind = Kind::gfm;
  Target target;
  std::string weight;      ///< name of the column of weights; empty: none
  int hash_bits = 0;       ///< above 0: categories, or libsvm indices, share 2^hash_bits features per side
  Index index_base = 0;    ///< libsvm: smallest index
  Index right_first = -1;  ///< libsvm and npy, bilinear models: first index of z; -1: none
  Index right_last = -1;   ///< last index of z; -1: no limit
  std::optional<PriorGroups> index_groups;  ///< libsvm: given groups of the indices from index_base on; null: none
  Index min_feature_count = 1;              ///< lower bound of count() for a side that grows; keeps count() >= rank

  [[nodiscard]] bool is_bilinear() const { return kind == Kind::bilinear; }
  /// True for sensing and phase retrieval. Their columns are measurement vectors, which are neither centered nor scaled
  /// and have no missing values.
  [[nodiscard]] bool is_measurement() const { return kind == Kind::sensing || kind == Kind::phase; }

  /// Throws std::invalid_argument unless rows of this layout can be encoded. Tables match by column name, so that only
  /// models of tables accept them. Matrices and sparse rows match by position (index j is column j). Models of tables
  /// accept them if all columns are numeric. `name`: the input, for the message.
  void require_layout(Layout rows, const std::string& name) const;

  /// True after set_columns() or restore().
  [[nodiscard]] bool is_fitted() const { return is_fitted_; }
  /// Sets the columns of the input and assigns their features. Empty for sparse rows.
  void set_columns(std::vector<Column> columns);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  /// True if all columns are numeric, so that every row contains every feature.
  [[nodiscard]] bool is_dense() const;

  /// True if new categories or indices add features to this side.
  [[nodiscard]] bool grows(Side side) const { return grows_[index_of(side)]; }
  [[nodiscard]] Index count(Side side) const {
    return grows(side) ? std::max(counts_[index_of(side)], min_feature_count) : counts_[index_of(side)];
  }
  /// Number of features, excluding those that only `min_feature_count` reserves. Without argument: of both sides.
  [[nodiscard]] Index seen_count(Side side) const { return counts_[index_of(side)]; }
  [[nodiscard]] Index seen_count() const { return counts_[0] + counts_[1]; }
  [[nodiscard]] Index left_dim() const { return is_bilinear() ? count(Side::left) : 0; }  ///< as Model::left_dim
  [[nodiscard]] Index dim() const { return count(Side::left) + count(Side::right); }

  static constexpr Index unknown = -1;  ///< no feature

  /// Returns the feature of a category (an empty text is a missing value) as an index within the side of its column. A
  /// new category gets a new feature if `grow` is true, else the result is `unknown`. With hashing, the result is
  /// `unknown` until a call with `grow` has used the same slot.
  Index encode_category(std::size_t column, std::string_view text, bool grow);
  /// The dictionary of a categorical column. Its numbers are features, as results of encode_category(). Without
  /// hashing.
  [[nodiscard]] Dictionary::Reader dictionary(std::size_t column) const { return dictionaries_[column]->reader(); }
  /// As encode_category() with hashing and without `grow`.
  [[nodiscard]] Index find_hashed(std::size_t column, std::string_view text) const;
  /// Returns the side and feature of a libsvm index. `grow` as in encode_category().
  std::pair<Side, Index> encode_index(std::int64_t index, bool grow);

  /// Name of a feature for output. `feature`: index over both sides, x first.
  [[nodiscard]] std::string name(Index feature) const;
  /// Sets the bounds between which numbers of a numeric column are clipped, in units of the scaled column.
  void set_clipping(std::size_t column, double low, double high);
  /// Number of changes of the scaling of a column by set_clipping().
  [[nodiscard]] Index clipping_changes() const { return clipping_changes_; }
  /// Scaling of each feature, x first; the identity for indicators.
  [[nodiscard]] std::vector<Scaling> scalings() const;
  /// The column of each indicator feature (values 0 and 1): a category, or a missing-value indicator. At most one
  /// indicator of a column is 1 in a row. -1 for all other features, hashed ones included.
  [[nodiscard]] std::vector<Index> indicator_columns() const;

  /// Updates the sets of feature values that linear_squares() uses with those of training rows.
  void update_values(const RowBlock<double>& block);
  /// Declares all feature values unknown. Call it if training used rows that update_values() has not received.
  void clear_values();
  /// Feature x_j with x_j^2 = slope x_j + constant (1 - x_m) in all training rows, where x_m is the missing-value
  /// indicator of its column (0 if there is none).
  struct LinearSquare {
    Index feature = 0;  ///< j
    double slope = 1;
    double constant = 0;
    Index missing_indicator = -1;  ///< m; x_m is 1 if the number is missing, and x_j is then 0. -1: none
  };
  /// Features x_j of x with two values a and b, for which x_j^2 = (a + b) x_j - a b. The square of such a feature and
  /// its linear term are interchangeable. Contains indicators, numeric columns with two values, and hashed features and
  /// libsvm indices with values 0 and 1. For bilinear models and measurements, which do not have both terms, the result
  /// contains only indicators.
  [[nodiscard]] std::vector<LinearSquare> linear_squares() const;

  /// Prior group of each feature. The parameters of the features of a group share a prior distribution. There is one
  /// group per column for its indicators, and one per side for hashed features or libsvm indices. -1 (no group) for
  /// numeric columns.
  [[nodiscard]] std::vector<Index> feature_groups() const;
  /// Prior group of a feature: as in feature_groups(), but group_of_numbers() for all features of numeric columns.
  [[nodiscard]] Index group_of(Index feature) const;
  /// group_of() of all features. The groups are the columns, the sides, the numbers, and those of `index_groups`.
  [[nodiscard]] PriorGroups prior_groups() const;
  [[nodiscard]] Index group_of_numbers() const { return static_cast<Index>(columns_.size()) + 2; }
  [[nodiscard]] Index group_count() const { return first_index_group() + (index_groups ? index_groups->count() : 0); }
  /// First of the groups of `index_groups`.
  [[nodiscard]] Index first_index_group() const { return group_of_numbers() + 1; }
  [[nodiscard]] Index group_of_side(Side side) const { return static_cast<Index>(columns_.size() + index_of(side)); }
  /// Group of a libsvm index, which need not be a feature.
  [[nodiscard]] Index group_of_index(Side side, std::int64_t index) const {
    return has_group(index) ? first_index_group() + index_groups->group_of(index - index_base) : group_of_side(side);
  }
  /// Whether `index_groups` contains the libsvm index.
  [[nodiscard]] bool has_group(std::int64_t index) const {
    return index_groups && index - index_base < index_groups->feature_count();
  }
  [[nodiscard]] Index group_of_category(std::size_t column) const {
    return hash_bits > 0 ? group_of_side(side_of(columns_[column])) : static_cast<Index>(column);
  }

  /// A category: its column, and its text, which is valid as long as the map.
  struct Category {
    std::size_t column = 0;
    std::string_view text;
  };
  /// Number of categories of a side; 0 with hashing.
  [[nodiscard]] Index category_count(Side side) const {
    return static_cast<Index>(category_columns_[index_of(side)].size());
  }
  /// Category `number` of a side, in the order of the features.
  [[nodiscard]] Category category(Side side, Index number) const {
    const auto column = static_cast<std::size_t>(category_columns_[index_of(side)][static_cast<std::size_t>(number)]);
    return {column, dictionaries_[column]->text(category_texts_[index_of(side)][static_cast<std::size_t>(number)])};
  }
  /// Hash slots that training rows have used, one bit each, x first. Empty without hashing, and if the slots are
  /// unknown, in which case all of them count as used.
  [[nodiscard]] std::vector<std::uint8_t> used_slots() const;
  /// Restores used_slots(). Returns false, without effect, if the number of bytes is wrong.
  [[nodiscard]] bool restore_used_slots(const std::vector<std::uint8_t>& bytes);
  /// False for a hash slot that no training row has used.
  [[nodiscard]] bool is_used(Index feature) const;
  /// Hashed features or libsvm indices of x that have no other values than 0 and 1, one bit each. Empty if unknown.
  [[nodiscard]] std::vector<std::uint8_t> binary_features() const;
  /// Restores binary_features(). Returns false, without effect, if the number of bytes is wrong.
  [[nodiscard]] bool restore_binary_features(const std::vector<std::uint8_t>& bytes);

  /// Restores a saved map: the columns, the categories in the order of their features, and for libsvm the number of
  /// features of each side. All hash slots count as used until restore_used_slots(), and values of sparse features are
  /// unknown until restore_binary_features().
  void restore(std::vector<Column> columns, Index left_count, Index right_count,
               const std::vector<std::pair<std::size_t, std::string>>& categories);

 private:
  static std::size_t index_of(Side side) { return static_cast<std::size_t>(side); }
  static Side side_of(const Column& column) { return column.is_right ? Side::right : Side::left; }

  /// Sets `columns_` and all members that derive from it.
  void assign_features(std::vector<Column> columns);
  /// True if the model has linear terms and squares of features.
  [[nodiscard]] bool has_squares() const { return !is_bilinear() && !is_measurement(); }
  /// True if the map has sparse numbers. These are the hashed features or libsvm indices, which follow the numbers and
  /// missing-value indicators of a side and may have values other than 0 and 1.
  [[nodiscard]] bool has_sparse_numbers() const { return hash_bits > 0 || layout == Layout::sparse; }
  /// Number of sparse numbers of x.
  [[nodiscard]] Index sparse_number_count() const { return has_sparse_numbers() ? counts_[0] - first_category_[0] : 0; }
  /// Adds the values of `count` rows to Column::values. A column with a third value is removed from
  /// `two_valued_columns_`. `rows`: features of the first row; the next row starts `stride` numbers later.
  void update_values_of_columns(const double* rows, std::size_t count, std::size_t stride);
  /// True if a sparse number of x has no other values than 0 and 1. `sparse_number`: counted from 0.
  [[nodiscard]] bool is_binary(Index sparse_number) const;
  /// Size of the bit set of the hash slots of a side; 0 without hashing.
  [[nodiscard]] std::size_t slot_bytes(Side side) const;
  /// The slot of a hash value.
  [[nodiscard]] Index slot_of(std::uint64_t hash) const {
    return static_cast<Index>(hash & ((std::uint64_t{1} << hash_bits) - 1));
  }
  /// Whether a training row has used a slot. Concurrent calls of use_slot() are safe.
  [[nodiscard]] bool is_slot_used(std::size_t side, Index slot) const;
  void use_slot(std::size_t side, Index slot);
  /// Returns the feature of the slot of a hash value. `grow` as in encode_category().
  Index find_slot(std::size_t side, std::uint64_t hash, bool grow);

  bool is_fitted_ = false;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<Dictionary>> dictionaries_;  ///< per column; nullptr unless categorical without hashing
  std::array<std::vector<std::size_t>, 2> column_of_;  ///< column of each number and missing-value indicator, per side
  std::array<Index, 2> counts_{};                      ///< features of each side
  std::array<bool, 2> grows_{};
  std::array<Index, 2> first_category_{};  ///< first category, hash slot or libsvm index of each side
  // Categories of each side, in the order of their features.
  std::array<std::vector<std::int32_t>, 2> category_columns_;
  std::array<std::vector<std::uint64_t>, 2> category_texts_;  ///< positions in the dictionaries of the columns
  Index clipping_changes_ = 0;
  std::array<std::vector<std::uint8_t>, 2> used_slots_;  ///< one bit per slot; empty: all used, or no hashing
  std::vector<std::size_t> two_valued_columns_;  ///< columns with at most two values so far, in increasing order
  /// For each hashed feature or libsvm index of x: true if it has a value other than 0 and 1. Features beyond the end
  /// have none. nullopt: unknown.
  std::optional<std::vector<bool>> has_other_values_;
  std::vector<double> row_;  ///< numbers and missing-value indicators of one sparse row
};

}  // namespace dyad
