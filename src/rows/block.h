#pragma once

#include <algorithm>
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

/// Rows in a block that is large enough to share among threads and small enough to stay out of the way.
inline Index block_rows(Index dim, std::size_t scalar_bytes) {
  constexpr Index block_bytes = Index{4} << 20;
  return std::clamp<Index>(block_bytes / (dim * static_cast<Index>(scalar_bytes)), 16, 8192);
}

}  // namespace dyad
