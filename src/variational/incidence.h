#pragma once

#include <cstdint>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Numbers of which many are 1 throughout, and then take no room.
template <typename Number>
class OftenOnes {
 public:
  void resize(std::size_t size, bool are_ones) {
    if (!are_ones) numbers_.resize(size);
  }
  void set(std::size_t place, Number number) {
    if (!numbers_.empty()) numbers_[place] = number;
  }
  [[nodiscard]] double operator[](std::size_t place) const {
    return numbers_.empty() ? 1.0 : static_cast<double>(numbers_[place]);
  }

 private:
  std::vector<Number> numbers_;
};

/// Which features occur in which rows, to be read both ways. Rows without weight and zeros are left out, and the order
/// of rows is its own. Ratings, pairs of features that are there or not, take a third of the room of other rows.
template <typename Scalar>
struct Incidence {
  explicit Incidence(const Rows<Scalar>& rows);

  Index dim = 0;
  Index count = 0;                                ///< of rows
  bool deep = false;                              ///< a row has more than two entries
  std::vector<std::int32_t> row_features;         ///< one per entry, row by row
  OftenOnes<Scalar> row_values;                   ///< likewise
  std::vector<double> targets;                    ///< one per row
  OftenOnes<double> weights;                      ///< likewise
  std::vector<Index> feature_offsets;             ///< of a feature's entries
  std::vector<std::int32_t> feature_rows;         ///< one per entry, feature by feature
  OftenOnes<Scalar> feature_values;               ///< likewise
  std::vector<std::int32_t> partners;             ///< not deep: the other feature of the row, `dim` where there is none
  OftenOnes<Scalar> partner_values;               ///< likewise
  std::vector<std::vector<std::int32_t>> groups;  ///< features that never occur in the same row; all that occur

  /// Of the entries of row i; `count`: the end of all.
  [[nodiscard]] Index first_entry(Index i) const {
    return row_offsets_.empty() ? 2 * i : row_offsets_[static_cast<std::size_t>(i)];
  }

  [[nodiscard]] Index first_of(Index feature) const { return feature_offsets[static_cast<std::size_t>(feature)]; }
  [[nodiscard]] Index count_of(Index feature) const {
    return feature_offsets[static_cast<std::size_t>(feature + 1)] - first_of(feature);
  }

 private:
  void copy(const Rows<Scalar>& rows);
  void transpose();
  void find_groups();
  [[nodiscard]] std::vector<std::int32_t> order_of(const Rows<Scalar>& rows) const;

  bool all_ones_ = true;            ///< all values
  std::vector<Index> row_offsets_;  ///< of a row's entries; empty where each has two
};

}  // namespace dyad
