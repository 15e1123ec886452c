#pragma once

#include <algorithm>
#include <cstdint>
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

/// Sparse rows and their targets, owned and used again from block to block.
template <typename Scalar>
struct SparseBlock {
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<Scalar> values;
  std::vector<Scalar> targets;

  void clear() {
    offsets.assign(1, 0);
    columns.clear();
    values.clear();
    targets.clear();
  }

  [[nodiscard]] Index count() const { return static_cast<Index>(offsets.size()) - 1; }
  [[nodiscard]] Rows<Scalar> view(Index dim) const {
    return Rows<Scalar>::sparse(offsets, columns, values, dim, targets);
  }
};

/// Rows in a block that is large enough to share among threads and small enough to stay out of the way.
inline Index block_rows(Index dim, std::size_t scalar_bytes) {
  constexpr Index block_bytes = Index{4} << 20;
  return std::clamp<Index>(block_bytes / (dim * static_cast<Index>(scalar_bytes)), 16, 8192);
}

}  // namespace dyad
