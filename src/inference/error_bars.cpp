#include "inference/error_bars.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "training/state/train_state.h"

namespace dyad {

ErrorBars::ErrorBars(const ModelFile& file, const std::string& path) : anova_(file.anova) {
  if (anova_) {
    reader_.emplace(file.features);
    return;
  }
  KalmanFilter<double> filter = SavedPosterior::load(file, path).filter;
  UnknownFeatures unknown(filter, file.features.feature_groups(), file.features.group_count());
  filter_.emplace(FilterPosterior{std::move(filter), std::move(unknown)});
}

double ErrorBars::unknown_variance(const Rows<double>& rows, Index i, const std::vector<Index>& groups) const {
  if (filter_) return filter_->unknown_features.variance(filter_->filter, rows, i, groups);
  double sum = 0;
  for (const AnovaBlock& block : anova_->blocks)
    for (const Index axis : block.axes)
      if (std::find(groups.begin(), groups.end(), anova_->axes[static_cast<std::size_t>(axis)].column) != groups.end())
        sum += block.variance;
  return sum;
}

void ErrorBars::compute_variances(const RowBlock<double>& block, Index first, std::span<double> variances,
                                  std::span<double> noise) const {
  const auto count = static_cast<Index>(variances.size());
  const Rows<double> rows = block.view().slice(first, count);
  if (anova_) {
    ColumnTable table = reader_->empty_table();
    reader_->append(rows, table);
    anova_->predict_variances(table, variances);
    anova_->predict_noise(table, noise);
  } else {
    std::vector<double> means(variances.size());
    filter_->filter.predict(rows, means, variances);
    std::fill(noise.begin(), noise.end(), filter_->filter.noise_variance());
  }
  auto cell = std::lower_bound(block.unknown_cells.begin(), block.unknown_cells.end(), first,
                               [](const UnknownCell& unknown, Index row) { return unknown.row < row; });
  std::vector<Index> unknown_groups;  // of the cells of one row
  for (Index i = 0; i < count; ++i) {
    unknown_groups.clear();
    for (; cell != block.unknown_cells.end() && cell->row == first + i; ++cell) unknown_groups.push_back(cell->group);
    variances[static_cast<std::size_t>(i)] += unknown_variance(rows, i, unknown_groups);
  }
}

}  // namespace dyad
