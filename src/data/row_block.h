#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Dense rows and their targets, owned and used again from block to block.
template <typename Scalar>
struct DenseBlock {
  Index dim = 0;
  std::vector<Scalar> values;
  std::vector<Scalar> targets;

  void resize(Index count, Index new_dim) {
    dim = new_dim;
    values.resize(static_cast<std::size_t>(count * new_dim));
    targets.resize(static_cast<std::size_t>(count));
  }

  [[nodiscard]] Rows<Scalar> view() const { return Rows<Scalar>::dense(values, dim, targets); }
};

/// A cell whose category or index the model does not know. It has no entry in its row.
struct UnknownCell {
  Index row = 0;    ///< of the block
  Index group = 0;  ///< of the features that it belongs to, as FeatureMap numbers them
};

/// Rows as a stream delivers them, dense or sparse, owned and used again from block to block.
template <typename Scalar>
struct RowBlock {
  Index dim = 0;
  Index left_dim = 0;  ///< as in Model
  bool dense = false;
  std::vector<Index> offsets{0};      ///< of the entries; dense: unused
  std::vector<std::int32_t> columns;  ///< dense: unused
  std::vector<Scalar> values;
  std::vector<Scalar> targets;             ///< empty if they are not needed
  std::vector<Scalar> weights;             ///< empty: all 1
  std::string file;                        ///< all rows of a block come from one
  std::vector<std::int64_t> lines;         ///< where each row stands in it; its length is the number of rows
  std::vector<UnknownCell> unknown_cells;  ///< in the order of the rows
  bool ends_stretch = false;               ///< a checkpoint belongs behind the last row

  void clear() {
    dim = left_dim = 0;
    dense = ends_stretch = false;
    offsets.assign(1, 0);
    columns.clear();
    values.clear();
    targets.clear();
    weights.clear();
    lines.clear();
    file.clear();
    unknown_cells.clear();
  }

  /// Of the row that is being read, before its line is added.
  void add_unknown_cell(Index group) { unknown_cells.push_back({count(), group}); }

  [[nodiscard]] Index count() const { return static_cast<Index>(lines.size()); }

  [[nodiscard]] Rows<Scalar> view() const {
    const Rows<Scalar> rows =
        dense ? Rows<Scalar>::dense(values, dim, targets)
              : Rows<Scalar>::template sparse_unchecked<Index>(offsets, columns, values, dim, targets);
    return weights.empty() ? rows : rows.weighted(weights);
  }
};

/// Where a block of rows is full: at so many rows or entries, whichever comes first.
struct BlockLimits {
  Index rows = 0;
  Index entries = 0;

  [[nodiscard]] bool reached_by(const RowBlock<double>& block) const {
    return block.count() >= rows || static_cast<Index>(block.values.size()) >= entries;
  }
};

/// Rows in a block that is large enough to share among threads and small enough to stay out of the way.
inline Index block_rows(Index dim, std::size_t scalar_bytes) {
  constexpr Index block_bytes = Index{4} << 20;
  return std::clamp<Index>(block_bytes / (dim * static_cast<Index>(scalar_bytes)), 16, 8192);
}

}  // namespace dyad
