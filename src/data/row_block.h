#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Block of dense rows with targets. Owns its numbers; reuse it for the next block to avoid allocations.
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

/// Cell of the input whose category or index is not a feature of the model. The encoded row has no entry for the cell.
struct UnknownCell {
  Index row = 0;    ///< index in the block
  Index group = 0;  ///< feature group of the cell, numbered by FeatureMap
};

/// Block of encoded rows from an input stream, dense or sparse. Owns its numbers; reuse it for the next block to avoid
/// allocations.
template <typename Scalar>
struct RowBlock {
  Index dim = 0;
  Index left_dim = 0;  ///< bilinear models: number of left features; symmetric models: 0
  bool is_dense = false;
  std::vector<Index> offsets{0};      ///< row i has the entries [offsets[i], offsets[i + 1]); unused if dense
  std::vector<std::int32_t> columns;  ///< feature of each entry; unused if dense
  std::vector<Scalar> values;
  std::vector<Scalar> targets;             ///< one per row; empty: no targets
  std::vector<Scalar> weights;             ///< empty: all 1
  std::string file;                        ///< input file of all rows of the block
  std::vector<std::int64_t> lines;         ///< number of the line or row in `file`, from 1; one per row
  std::vector<UnknownCell> unknown_cells;  ///< sorted by row
  /// Symmetric models, in training: prior groups (FeatureMap::group_of) of the features that were added since the
  /// preceding block, which are the last ones.
  std::vector<std::int32_t> new_feature_groups;
  bool ends_checkpoint_interval = false;  ///< true: a checkpoint is due after the last row

  void clear() {
    dim = left_dim = 0;
    is_dense = ends_checkpoint_interval = false;
    offsets.assign(1, 0);
    columns.clear();
    values.clear();
    targets.clear();
    weights.clear();
    lines.clear();
    file.clear();
    unknown_cells.clear();
    new_feature_groups.clear();
  }

  /// Records an unknown cell of the row that is being read. Call it before the row is added to `lines`.
  void add_unknown_cell(Index group) { unknown_cells.push_back({count(), group}); }

  [[nodiscard]] Index count() const { return static_cast<Index>(lines.size()); }

  [[nodiscard]] Rows<Scalar> view() const {
    const Rows<Scalar> rows =
        is_dense ? Rows<Scalar>::dense(values, dim, targets)
                 : Rows<Scalar>::template sparse_unchecked<Index>(offsets, columns, values, dim, targets);
    return weights.empty() ? rows : rows.weighted(weights);
  }
};

/// Maximum size of a block: a block is full if it reaches either limit.
struct BlockLimits {
  Index max_rows = 0;
  Index max_entries = 0;

  [[nodiscard]] bool are_reached_by(const RowBlock<double>& block) const {
    return block.count() >= max_rows || static_cast<Index>(block.values.size()) >= max_entries;
  }
};

/// Number of rows per block for dense rows of `dim` features: large enough to be split over threads, small enough for
/// its memory to be negligible.
inline Index rows_per_block(Index dim, std::size_t scalar_bytes) {
  constexpr Index block_bytes = Index{4} << 20;  // controls the memory of a block; sensitivity: docs/constants.md
  constexpr Index min_rows = 16;                 // minimum for wide rows, so that threads can share a block
  constexpr Index max_rows = 8192;               // maximum for narrow rows; sensitivity: docs/constants.md
  return std::clamp<Index>(block_bytes / (dim * static_cast<Index>(scalar_bytes)), min_rows, max_rows);
}

}  // namespace dyad
