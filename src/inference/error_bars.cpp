#include "inference/error_bars.h"

#include <algorithm>
#include <vector>

#include "training/state/train_state.h"

namespace dyad {

ErrorBars::ErrorBars(const ModelFile& file, const std::string& path)
    : filter_(SavedPosterior::load(file, path).filter),
      unknown_features_(filter_, file.features.feature_groups(), file.features.group_count()) {}

void ErrorBars::compute_variances(const RowBlock<double>& block, Index first, std::span<double> variances) const {
  const auto count = static_cast<Index>(variances.size());
  const Rows<double> rows = block.view().slice(first, count);
  std::vector<double> means(variances.size());
  filter_.predict(rows, means, variances);
  auto cell = std::lower_bound(block.unknown_cells.begin(), block.unknown_cells.end(), first,
                               [](const UnknownCell& unknown, Index row) { return unknown.row < row; });
  std::vector<Index> unknown_groups;  // of the cells of one row
  for (Index i = 0; i < count; ++i) {
    unknown_groups.clear();
    for (; cell != block.unknown_cells.end() && cell->row == first + i; ++cell) unknown_groups.push_back(cell->group);
    variances[static_cast<std::size_t>(i)] += unknown_features_.variance(filter_, rows, i, unknown_groups);
  }
}

}  // namespace dyad
