#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"
#include "linalg/simd.h"

namespace dyad {

/// Array that uses no memory if all of its elements are 1.
template <typename Number>
class ImplicitOnes {
 public:
  /// With `are_ones`, all elements are 1 and `set` has no effect.
  void resize(std::size_t size, bool are_ones) {
    if (!are_ones) values_.resize(size);
  }
  [[nodiscard]] bool are_ones() const { return values_.empty(); }
  void set(std::size_t index, Number value) {
    if (!are_ones()) values_[index] = value;
  }
  [[nodiscard]] double operator[](std::size_t index) const {
    return are_ones() ? 1.0 : static_cast<double>(values_[index]);
  }

 private:
  CacheAlignedVector<Number> values_;
};

/// Incidence of features and rows: the non-zero entries of sparse rows, by row and by feature, and a coloring of the
/// features. Rows of weight 0 and zero entries are left out.
///
/// Rows are sorted by their first feature, so that the rows in which a feature is the first entry are consecutive and
/// need no list. An index "row i" refers to this order. Rows of two features of value 1 (ratings) take 16 bytes each.
///
/// Does not own the rows; the caller keeps them alive. Immutable, so that several threads can read it.
template <typename Scalar>
class Incidence {
 public:
  explicit Incidence(const Rows<Scalar>& rows);

  /// Entries of one feature, e = 0, ..., count - 1: first the rows in which the feature is not the first entry, which
  /// are listed, then the consecutive rows in which it is.
  struct Occurrences {
    Index count = 0;
    Index listed_count = 0;  ///< number of listed rows
    Index list_begin = 0;    ///< index of the first listed row in the list of all features
    Index first_row = 0;     ///< first of the consecutive rows
    /// Whether the feature is the first entry of the row of occurrence e.
    [[nodiscard]] bool is_first_entry(Index e) const { return e >= listed_count; }
  };
  [[nodiscard]] Occurrences occurrences(Index feature) const;
  [[nodiscard]] Index occurrence_count(Index feature) const { return occurrences(feature).count; }

  /// Row of occurrence e. With `ahead`, the row that is stored `ahead` places later, which may belong to another
  /// feature, for prefetching. Returns `count` past the end.
  [[nodiscard]] Index row(const Occurrences& of, Index e, Index ahead = 0) const {
    if (of.is_first_entry(e)) return std::min(count, of.first_row + e - of.listed_count + ahead);
    const std::size_t place = at(of.list_begin + e + ahead);
    return place < listed_rows_.size() ? listed_rows_[place] : count;
  }
  /// Value of the feature in the row of occurrence e.
  [[nodiscard]] double value(const Occurrences& of, Index e) const {
    return of.is_first_entry(e) ? row_values[at(first_entry(row(of, e)))] : listed_values_[at(of.list_begin + e)];
  }

  [[nodiscard]] double target(Index i) const { return static_cast<double>(rows_.targets()[at(source_rows_[at(i)])]); }
  [[nodiscard]] double weight(Index i) const {
    return weights_are_ones ? 1.0 : static_cast<double>(rows_.weight(source_rows_[at(i)]));
  }
  /// Prefetches the target of row i. Has no effect for i >= count.
  void prefetch_row(Index i) const {
    if (i < count) prefetch_cache_line(rows_.targets().data() + source_rows_[at(i)]);
  }

  /// Index of the first entry of row i in `row_features` and `row_values`. For i = count: the number of entries.
  [[nodiscard]] Index first_entry(Index i) const { return row_offsets_.empty() ? 2 * i : row_offsets_[at(i)]; }

  /// The other entry of a row with at most two entries. `feature` is `dim` and `value` is 0 if there is none.
  struct Partner {
    Index feature = 0;
    double value = 1;
  };
  /// Partner of a feature in row i, which is the row of its occurrence e.
  [[nodiscard]] Partner partner(const Occurrences& of, Index e, Index i) const {
    const Index entry = first_entry(i) + (of.is_first_entry(e) ? 1 : 0);
    if (entry == first_entry(i + 1)) return {dim, 0};
    return {row_features[at(entry)], row_values[at(entry)]};
  }

  Index dim = 0;
  Index count = 0;             ///< number of rows
  bool has_long_rows = false;  ///< a row has more than two entries
  bool weights_are_ones = true;
  CacheAlignedVector<std::int32_t> row_features;  ///< features of the entries, row by row
  ImplicitOnes<Scalar> row_values;                ///< values of the same entries
  /// Partition of the features that occur, such that no row contains two features of a class.
  std::vector<std::vector<std::int32_t>> color_classes;

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  /// Calls visit(feature, value) for the non-zero entries of a row of the source.
  template <typename Visit>
  void for_each_entry_of(Index source, Visit&& visit) const;
  /// Smallest feature of a row of the source. `dim` for a row without entries.
  [[nodiscard]] Index first_feature_of(Index source) const;
  /// Calls visit(row, source) for the rows with a positive weight, in the order of the source.
  template <typename Visit>
  void for_each_row(Visit&& visit) const;
  /// Computes `source_rows_` and `first_rows_`.
  void sort_rows();
  /// Computes the entries by row.
  void copy_entries();
  /// Computes the entries by feature, except the first entry of each row.
  void list_occurrences();
  /// Computes `color_classes`.
  void color_features();

  Rows<Scalar> rows_;                             ///< the source
  CacheAlignedVector<std::int32_t> source_rows_;  ///< of row i, its index in the source
  Index entry_count_ = 0;                         ///< number of non-zero entries of all rows
  bool values_are_ones_ = true;
  bool rows_are_pairs_ = true;                    ///< every row has two entries
  CacheAlignedVector<Index> row_offsets_;         ///< first entry of each row; empty if `rows_are_pairs_`
  std::vector<Index> first_rows_;                 ///< of feature j, the first row in which it is the first entry
  std::vector<Index> list_offsets_;               ///< of feature j, its first place in `listed_rows_`
  CacheAlignedVector<std::int32_t> listed_rows_;  ///< rows of all entries except the first of each row, by feature
  ImplicitOnes<Scalar> listed_values_;            ///< values of the same entries
};

template <typename Scalar>
typename Incidence<Scalar>::Occurrences Incidence<Scalar>::occurrences(Index feature) const {
  const std::size_t j = at(feature);
  const Index listed_count = list_offsets_[j + 1] - list_offsets_[j];
  return {listed_count + first_rows_[j + 1] - first_rows_[j], listed_count, list_offsets_[j], first_rows_[j]};
}

}  // namespace dyad
