#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"
#include "linalg/simd.h"

namespace dyad {

/// Array that takes no memory while all of its numbers are 1.
template <typename Number>
class ImplicitOnes {
 public:
  void resize(std::size_t size, bool are_ones) {
    if (!are_ones) numbers_.resize(size);
  }
  [[nodiscard]] bool are_ones() const { return numbers_.empty(); }
  void set(std::size_t place, Number number) {
    if (!are_ones()) numbers_[place] = number;
  }
  [[nodiscard]] double operator[](std::size_t place) const {
    return are_ones() ? 1.0 : static_cast<double>(numbers_[place]);
  }

 private:
  BigVector<Number> numbers_;
};

/// Which features occur in which rows, to be read both ways. Rows without weight and zeros are left out, and the order
/// of rows is its own: by their first feature, so that the rows a feature begins need no list. Ratings, pairs of
/// features that are there or not, take 12 bytes and a target each.
template <typename Scalar>
class Incidence {
 public:
  explicit Incidence(const Rows<Scalar>& rows);  ///< whose owner keeps them

  /// The rows of a feature as they come: first those in which others come before it, then those it begins.
  struct Occurrences {
    Index count = 0;
    Index listed = 0;      ///< of them
    Index list_begin = 0;  ///< in the list of all features
    Index first_row = 0;   ///< of those that are not listed
    [[nodiscard]] bool begins(Index e) const { return e >= listed; }
  };
  [[nodiscard]] Occurrences of(Index feature) const;
  [[nodiscard]] Index count_of(Index feature) const { return of(feature).count; }

  /// Of a feature's occurrence e; so far ahead, where it may be another feature's. `count`: there is none.
  [[nodiscard]] Index row(const Occurrences& of, Index e, Index ahead = 0) const {
    if (of.begins(e)) return std::min(count, of.first_row + e - of.listed + ahead);
    const std::size_t place = at(of.list_begin + e + ahead);
    return place < listed_rows_.size() ? listed_rows_[place] : count;
  }
  [[nodiscard]] double value(const Occurrences& of, Index e) const {
    return of.begins(e) ? row_values[at(first_entry(row(of, e)))] : listed_values_[at(of.list_begin + e)];
  }

  [[nodiscard]] double target(Index i) const { return static_cast<double>(rows_.targets()[at(order_[at(i)])]); }
  [[nodiscard]] double weight(Index i) const {
    return weights_are_ones ? 1.0 : static_cast<double>(rows_.weight(order_[at(i)]));
  }
  /// Row i will be asked for soon, if there is one.
  void fetch_row(Index i) const {
    if (i < count) fetch(rows_.targets().data() + order_[at(i)]);
  }

  /// Of the entries of row i; `count`: the end of all.
  [[nodiscard]] Index first_entry(Index i) const { return row_offsets_.empty() ? 2 * i : row_offsets_[at(i)]; }

  /// The feature beside a feature's occurrence e in row i, which has no more than two; `dim`: there is none.
  struct Partner {
    Index feature = 0;
    double value = 1;
  };
  [[nodiscard]] Partner partner(const Occurrences& of, Index e, Index i) const {
    const Index entry = first_entry(i) + (of.begins(e) ? 1 : 0);
    if (entry == first_entry(i + 1)) return {dim, 0};
    return {row_features[at(entry)], row_values[at(entry)]};
  }

  Index dim = 0;
  Index count = 0;    ///< of rows
  bool deep = false;  ///< a row has more than two entries
  bool weights_are_ones = true;
  BigVector<std::int32_t> row_features;           ///< one per entry, row by row
  ImplicitOnes<Scalar> row_values;                ///< likewise
  std::vector<std::vector<std::int32_t>> groups;  ///< features that never occur in the same row; all that occur

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  /// Zeros are none.
  template <typename Visit>
  void for_each_entry_of(Index given, Visit&& visit) const;
  [[nodiscard]] Index first_feature_of(Index given) const;
  /// visit(row, given) for all that count, as they were given.
  template <typename Visit>
  void for_each_row(Visit&& visit) const;
  void put_in_order();
  void copy();
  void transpose();
  void find_groups();

  Rows<Scalar> rows_;
  BigVector<std::int32_t> order_;  ///< which of the rows given row i is
  Index entries_ = 0;
  bool all_ones_ = true;                 ///< all values
  bool all_pairs_ = true;                ///< of entries
  BigVector<Index> row_offsets_;         ///< of a row's entries; empty where each has two
  std::vector<Index> first_rows_;        ///< of those that each feature begins
  std::vector<Index> list_offsets_;      ///< of each feature's
  BigVector<std::int32_t> listed_rows_;  ///< of all entries but the first ones, feature by feature
  ImplicitOnes<Scalar> listed_values_;   ///< likewise
};

template <typename Scalar>
typename Incidence<Scalar>::Occurrences Incidence<Scalar>::of(Index feature) const {
  const std::size_t j = at(feature);
  const Index listed = list_offsets_[j + 1] - list_offsets_[j];
  return {listed + first_rows_[j + 1] - first_rows_[j], listed, list_offsets_[j], first_rows_[j]};
}

}  // namespace dyad
