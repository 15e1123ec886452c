#include "features/row_builder.h"

#include <algorithm>

namespace dyad {

void RowBuilder::append_to(RowBlock<double>& block) {
  if (dense_) {
    const std::size_t first = block.values.size();
    block.values.resize(first + static_cast<std::size_t>(map_.dim()));
    const Index left_dim = map_.left_dim();
    for (const Entry& entry : entries_) {
      const Index feature = entry.feature < 0 ? left_dim + ~entry.feature : entry.feature;
      block.values[first + static_cast<std::size_t>(feature)] = entry.value;
    }
    entries_.clear();
    return;
  }
  // Features of x rise, then those of z; two that hash to one feature count together.
  const auto before = [](const Entry& a, const Entry& b) {
    const bool a_right = a.feature < 0;
    const bool b_right = b.feature < 0;
    if (a_right != b_right) return b_right;
    return a_right ? a.feature > b.feature : a.feature < b.feature;
  };
  if (!std::is_sorted(entries_.begin(), entries_.end(), before)) std::sort(entries_.begin(), entries_.end(), before);
  const auto begin = static_cast<std::size_t>(block.offsets.back());
  for (const Entry& entry : entries_) {
    if (block.columns.size() > begin && block.columns.back() == entry.feature) {
      block.values.back() += entry.value;
      continue;
    }
    block.columns.push_back(entry.feature);
    block.values.push_back(entry.value);
  }
  block.offsets.push_back(static_cast<Index>(block.values.size()));
  entries_.clear();
}

void RowBuilder::finish(const FeatureMap& map, RowBlock<double>& block) {
  block.dense = map.is_dense();
  block.dim = map.dim();
  block.left_dim = map.left_dim();
  const auto left = static_cast<std::int32_t>(map.left_dim());
  for (std::int32_t& column : block.columns)
    if (column < 0) column = left + ~column;
}

}  // namespace dyad
