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

#include <dyad/data.h>
#include <dyad/rows.h>

#include "data/row_block.h"
#include "encoding/dictionary.h"
#include "encoding/scaling.h"
#include "encoding/target.h"
#include "encoding/two_values.h"

namespace dyad {

/// A column of the data that feeds features.
struct Column {
  enum class Role { number, category };

  std::string name;
  Role role = Role::number;
  bool right = false;  ///< bilinear: of z
  Scaling scaling;
  bool marks_missing = false;  ///< the first rows had missing values: these have an indicator feature
  /// The scaled values of all rows that were read, without marked gaps. Nothing: more than two, or not known.
  std::optional<TwoValues> values;

  Index number_feature = -1;   ///< of its side
  Index missing_feature = -1;  ///< of its side

  /// Sets scaling and marks_missing by the values of the first rows, of which NaN are missing, with weights (empty: 1).
  void fit_numbers(const std::vector<double>& first, std::span<const double> weights = {});
};

/// From columns to features and back: roles, scales, the dictionary of categories, and the target. It is fixed by the
/// first rows of a training run, but for the categories and indices, which grow as the stream shows new ones, always at
/// the end of their side: the features of x (symmetric: all), or those of z. A model carries it.
class FeatureMap {
 public:
  FeatureMap() = default;
  FeatureMap(FeatureMap&&) = default;  ///< names point into the dictionaries, which move but do not copy
  FeatureMap& operator=(FeatureMap&&) = default;

  enum class Side : std::uint8_t { left, right };

  Layout layout = Layout::table;
  Kind kind = Kind::gfm;
  Target target;
  std::string weight;  ///< the column of weights; empty: none
  int hash_bits = 0;
  Index index_base = 0;    ///< libsvm: the smallest index
  Index right_first = -1;  ///< libsvm and npy, bilinear: the first index of z
  Index right_last = -1;   ///< the last one; -1: as many as there are
  Index least_count = 1;   ///< minimum number of features of a side that grows, so that a model of the given rank fits

  [[nodiscard]] bool is_bilinear() const { return kind == Kind::bilinear; }
  /// Measurements of sensing and phase retrieval mean what they say: their columns are neither centred nor scaled, and
  /// cannot be missing.
  [[nodiscard]] bool is_measurement() const { return kind == Kind::sensing || kind == Kind::phase; }

  /// Throws std::invalid_argument unless rows of this layout can be encoded. Tables match by the names of columns, so
  /// that only models of tables accept them. Matrices and sparse rows match by position, where index j is column j:
  /// models of tables accept them if all columns are numeric.
  void require_layout(Layout rows, const std::string& name) const;

  /// Whether the first rows have decided what it is.
  [[nodiscard]] bool is_fixed() const { return fixed_; }
  void fix(std::vector<Column> columns);

  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  /// Whether there are only numbers: every row has every feature.
  [[nodiscard]] bool is_dense() const;

  /// Whether new features may come on this side.
  [[nodiscard]] bool grows(Side side) const { return grows_[index_of(side)]; }
  [[nodiscard]] Index count(Side side) const {
    return grows(side) ? std::max(counts_[index_of(side)], least_count) : counts_[index_of(side)];
  }
  /// Without features that no row has contained.
  [[nodiscard]] Index count_of_seen(Side side) const { return counts_[index_of(side)]; }
  [[nodiscard]] Index seen() const { return counts_[0] + counts_[1]; }
  [[nodiscard]] Index left_dim() const { return is_bilinear() ? count(Side::left) : 0; }  ///< as in Model
  [[nodiscard]] Index dim() const { return count(Side::left) + count(Side::right); }

  static constexpr Index unknown = -1;

  /// The feature for a category, counted within the side of its column; a new one if `grow`, else unknown. A hashed
  /// feature is unknown until a call with `grow` has used it.
  Index category(std::size_t column, std::string_view text, bool grow);
  /// Makes that quick for a category that will be asked for soon.
  void prefetch(std::size_t column, std::string_view text) const {
    if (hash_bits == 0) dictionaries_[column]->prefetch(text);
  }
  /// The feature for an index of libsvm text, likewise.
  std::pair<Side, Index> indexed(std::int64_t index, bool grow);

  /// What a feature (counted over both sides) is called.
  [[nodiscard]] std::string name(Index feature) const;
  /// One for each feature.
  [[nodiscard]] std::vector<Scaling> scalings() const;
  /// The column of each feature that is 1 in some rows and 0 in all others: a category of the column, or the mark of a
  /// missing number. A row has at most one of a column. -1 for all other features, hashed ones included.
  [[nodiscard]] std::vector<Index> indicator_columns() const;

  /// Notes the values of features in rows to learn from, as linear_squares() needs them.
  void update_values(const RowBlock<double>& block);
  /// Rows were learned whose values are not known.
  void forget_values();
  /// z^2 = slope z + constant (1 - z_mark) in all rows that were read.
  struct LinearSquare {
    Index feature = 0;
    double slope = 1;
    double constant = 0;
    Index mark = -1;  ///< the feature that marks a missing number, where z is 0; -1: none
  };
  /// Features of x with two values a and b: z^2 = (a + b) z - a b. These are categories, marks of missing cells,
  /// columns of numbers, and hashed features and indices of libsvm whose values are 0 and 1. Bilinear models and
  /// measurements have neither squares nor weights to choose between: for them only categories and marks are listed.
  [[nodiscard]] std::vector<LinearSquare> linear_squares() const;

  /// Groups of features whose parameters are alike before any data: the categories of each column, and for each side
  /// the features that are hashed or numbered. Of each feature, -1 for columns of numbers.
  [[nodiscard]] std::vector<Index> feature_groups() const;
  [[nodiscard]] Index group_count() const { return static_cast<Index>(columns_.size()) + 2; }
  [[nodiscard]] Index group_of_side(Side side) const { return static_cast<Index>(columns_.size() + index_of(side)); }
  [[nodiscard]] Index group_of_category(std::size_t column) const {
    return hash_bits > 0 ? group_of_side(side_of(columns_[column])) : static_cast<Index>(column);
  }

  /// Categories in the order of their features, side by side: the column and the text. Hashed ones are not remembered.
  [[nodiscard]] const std::vector<std::pair<std::size_t, const std::string*>>& categories(Side side) const {
    return category_names_[index_of(side)];
  }
  /// Hashed features that training rows have used, one bit each, side by side. Empty without hashing, and where this is
  /// not known, so that all of them count as used.
  [[nodiscard]] std::vector<std::uint8_t> used_slots() const;
  /// False if the number of bytes is not that of used_slots().
  [[nodiscard]] bool restore_used_slots(const std::vector<std::uint8_t>& bytes);
  /// False for a hashed feature that no training row has used.
  [[nodiscard]] bool is_used(Index feature) const;
  /// Hashed features, or indices of libsvm, whose values were all 0 or 1, one bit each. Empty if this is not known.
  [[nodiscard]] std::vector<std::uint8_t> flags() const;
  /// False if the number of bytes is not that of flags().
  [[nodiscard]] bool restore_flags(const std::vector<std::uint8_t>& bytes);

  /// Puts categories back that were saved, and for libsvm, which has none, the counts. All hashed features count as
  /// used until restore_used_slots(), and sparse values are not known until restore_flags().
  void restore(std::vector<Column> columns, Index left_count, Index right_count,
               const std::vector<std::pair<std::size_t, std::string>>& categories);

 private:
  static std::size_t index_of(Side side) { return static_cast<std::size_t>(side); }
  static Side side_of(const Column& column) { return column.right ? Side::right : Side::left; }

  void fix_columns(std::vector<Column> columns);
  /// Whether weights and squares of features both count.
  [[nodiscard]] bool has_squares() const { return !is_bilinear() && !is_measurement(); }
  /// Features behind the numbers and marks that may have any value.
  [[nodiscard]] bool has_sparse_numbers() const { return hash_bits > 0 || layout == Layout::sparse; }
  [[nodiscard]] Index sparse_number_count() const { return has_sparse_numbers() ? counts_[0] - first_category_[0] : 0; }
  /// `stride`: numbers from a row to the next.
  void update_values_of_columns(const double* rows, std::size_t count, std::size_t stride);
  [[nodiscard]] bool is_flag(Index sparse_number) const;
  [[nodiscard]] std::size_t slot_bytes(Side side) const;
  Index slot(std::size_t side, std::uint64_t hash, bool grow);

  bool fixed_ = false;
  std::vector<Column> columns_;
  std::vector<std::unique_ptr<Dictionary>> dictionaries_;  ///< one per column of categories that is not hashed
  std::array<std::vector<std::size_t>, 2> column_of_;      ///< of each feature that is no category: its column
  std::array<Index, 2> counts_{};
  std::array<bool, 2> grows_{};
  std::array<Index, 2> first_category_{};
  std::array<std::vector<std::pair<std::size_t, const std::string*>>, 2> category_names_;
  std::array<std::vector<std::uint8_t>, 2> used_slots_;  ///< bits; empty: all, or no hashing
  std::vector<std::size_t> two_valued_columns_;          ///< columns whose `values` are known
  /// Of each hashed feature or index of libsvm: whether a value was neither 0 nor 1. Features beyond its end had none.
  /// Nothing: not known.
  std::optional<std::vector<bool>> other_values_;
  std::vector<double> row_;  ///< the numbers and marks of one sparse row
};

}  // namespace dyad
