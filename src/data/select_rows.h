#pragma once

#include <algorithm>
#include <vector>

#include "data/row_block.h"

namespace dyad {

/// Removes the rows i of a training block with !keep(i). Blocks of training rows have no unknown cells.
template <typename Scalar, typename Keep>
void keep_rows(RowBlock<Scalar>& block, Keep&& keep) {
  const auto dim = static_cast<std::size_t>(block.dim);
  const bool is_weighted = !block.weights.empty();
  std::size_t kept = 0;
  std::size_t entries = 0;
  std::size_t next = 0;  // first entry of row i; its offset may have been overwritten
  for (std::size_t i = 0; i < block.lines.size(); ++i) {
    const bool is_kept = keep(static_cast<Index>(i));
    const std::size_t first = next;
    const std::size_t last = block.is_dense ? first + dim : static_cast<std::size_t>(block.offsets[i + 1]);
    next = last;
    if (!is_kept) continue;
    std::copy(block.values.begin() + static_cast<Index>(first), block.values.begin() + static_cast<Index>(last),
              block.values.begin() + static_cast<Index>(entries));
    if (!block.is_dense)
      std::copy(block.columns.begin() + static_cast<Index>(first), block.columns.begin() + static_cast<Index>(last),
                block.columns.begin() + static_cast<Index>(entries));
    entries += last - first;
    block.lines[kept] = block.lines[i];
    block.targets[kept] = block.targets[i];
    if (is_weighted) block.weights[kept] = block.weights[i];
    ++kept;
    if (!block.is_dense) block.offsets[kept] = static_cast<Index>(entries);
  }
  block.values.resize(entries);
  if (!block.is_dense) {
    block.columns.resize(entries);
    block.offsets.resize(kept + 1);
  }
  block.lines.resize(kept);
  block.targets.resize(kept);
  if (is_weighted) block.weights.resize(kept);
}

}  // namespace dyad
