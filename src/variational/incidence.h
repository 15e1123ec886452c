#pragma once

#include <cstdint>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Which features occur in which rows, to be read both ways. Rows without weight and zeros are left out, and the order
/// of rows is its own.
template <typename Scalar>
struct Incidence {
  explicit Incidence(const Rows<Scalar>& rows);

  Index dim = 0;
  Index count = 0;                                ///< of rows
  bool deep = false;                              ///< a row has more than two entries
  std::vector<Index> row_offsets;                 ///< of a row's entries
  std::vector<std::int32_t> row_features;         ///< one per entry, row by row
  std::vector<Scalar> row_values;                 ///< likewise
  std::vector<double> targets;                    ///< one per row
  std::vector<double> weights;                    ///< likewise
  std::vector<Index> feature_offsets;             ///< of a feature's entries
  std::vector<std::int32_t> feature_rows;         ///< one per entry, feature by feature
  std::vector<Scalar> feature_values;             ///< likewise
  std::vector<std::int32_t> partners;             ///< not deep: the other feature of the row, `dim` where there is none
  std::vector<Scalar> partner_values;             ///< likewise
  std::vector<std::vector<std::int32_t>> groups;  ///< features that never occur in the same row; all that occur

  [[nodiscard]] Index first_of(Index feature) const { return feature_offsets[static_cast<std::size_t>(feature)]; }
  [[nodiscard]] Index count_of(Index feature) const {
    return feature_offsets[static_cast<std::size_t>(feature + 1)] - first_of(feature);
  }

 private:
  void copy(const Rows<Scalar>& rows);
  void transpose();
  void find_groups();
};

}  // namespace dyad
