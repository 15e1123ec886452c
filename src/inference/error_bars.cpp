#include "inference/error_bars.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "training/state/train_state.h"

namespace dyad {

ErrorBars::ErrorBars(const ModelFile& file, const std::string& path) : file_(file), anova_(file.anova) {
  if (anova_) {
    reader_.emplace(file.features);
    return;
  }
  if (file.sampled) return;
  KalmanFilter<double> filter = SavedPosterior::load(file, path).filter;
  UnknownFeatures unknown(filter, file.features.feature_groups(), file.features.group_count());
  const auto& columns = file.features.columns();
  for (Index group = 0; group < file.features.group_count(); ++group) {
    const auto column = static_cast<std::size_t>(group);
    const bool is_right = column < columns.size() ? columns[column].is_right
                                                  : group == file.features.group_of_side(FeatureMap::Side::right);
    prior_groups_.push_back(file.features.is_bilinear() ? (is_right ? 1 : 0) : group);
  }
  filter_.emplace(FilterPosterior{std::move(filter), std::move(unknown)});
}

bool ErrorBars::predicts_by_posterior(const ModelFile& file) {
  if (file.sampled) return true;
  const auto contains_one = [&](const char* field) {
    const auto found = file.state.find(std::string("kalman.race.0.") + field);
    return found != file.state.end() && std::find(found->second.begin(), found->second.end(), 1) != found->second.end();
  };
  if (!contains_one("learns_prior")) return false;
  const bool has_separate_means = contains_one("groups_with_mean") && !contains_one("one_feature_per_row");
  if (!likelihood_of(file.features.target.task).is_classification() && !has_separate_means) return false;
  const auto is_zero = [](const std::vector<double>& numbers) {
    return std::all_of(numbers.begin(), numbers.end(), [](double number) { return number == 0; });
  };
  return !is_zero(file.model.weights) || !is_zero(file.model.spectrum);
}

template <typename Visit>
void ErrorBars::for_each_sampled(const RowBlock<double>& block, Index first, Index count, Visit&& visit) const {
  const Rows<double> rows = block.view().slice(first, count);
  std::vector<double> means(static_cast<std::size_t>(count));
  file_.model.predict(rows, means);
  auto cell = std::lower_bound(block.unknown_cells.begin(), block.unknown_cells.end(), first,
                               [](const UnknownCell& unknown, Index row) { return unknown.row < row; });
  std::vector<Index> unknown;
  for (Index i = 0; i < count; ++i) {
    unknown.clear();
    for (; cell != block.unknown_cells.end() && cell->row == first + i; ++cell) unknown.push_back(cell->group);
    const auto at = static_cast<std::size_t>(i);
    visit(at, file_.sampled->predict(file_.model, rows, i, means[at], unknown));
  }
}

void ErrorBars::predict_hierarchical(const RowBlock<double>& block, Index first, std::span<double> predictions,
                                     std::span<double> variances) const {
  auto cell = std::lower_bound(block.unknown_cells.begin(), block.unknown_cells.end(), first,
                               [](const UnknownCell& unknown, Index row) { return unknown.row < row; });
  const auto groups_of_row = [&](Index i, std::vector<Index>& groups) {
    for (; cell != block.unknown_cells.end() && cell->row == first + i; ++cell)
      groups.push_back(prior_groups_[static_cast<std::size_t>(cell->group)]);
  };
  predict_with_unknown_features<double>(filter_->filter,
                                        block.view().slice(first, static_cast<Index>(variances.size())), groups_of_row,
                                        predictions, variances);
}

void ErrorBars::posterior_predictors(const RowBlock<double>& block, Index first, std::span<double> predictors) const {
  if (file_.sampled) {
    const Likelihood& sampled_likelihood = likelihood_of(file_.features.target.task);
    for_each_sampled(block, first, static_cast<Index>(predictors.size()),
                     [&](std::size_t i, const SampledPosterior::Prediction& prediction) {
                       predictors[i] = sampled_likelihood.posterior_predictor(prediction.mean, prediction.variance);
                     });
    return;
  }
  std::vector<double> variances(predictors.size());
  predict_hierarchical(block, first, predictors, variances);
  const Likelihood& likelihood = *filter_->filter.options().likelihood;
  for (std::size_t i = 0; i < predictors.size(); ++i)
    predictors[i] = likelihood.posterior_predictor(predictors[i], variances[i]);
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
  if (file_.sampled)
    return for_each_sampled(block, first, count, [&](std::size_t i, const SampledPosterior::Prediction& prediction) {
      variances[i] = prediction.variance;
      noise[i] = prediction.noise;
    });
  const Rows<double> rows = block.view().slice(first, count);
  if (anova_) {
    ColumnTable table = reader_->empty_table();
    reader_->append(rows, table);
    anova_->predict_variances(table, variances);
    anova_->predict_noise(table, noise);
  } else {
    std::vector<double> means(variances.size());
    std::vector<bool> have_unknown(variances.size());
    for (const UnknownCell& cell : block.unknown_cells)
      if (cell.row >= first && cell.row < first + count)
        have_unknown[static_cast<std::size_t>(cell.row - first)] = true;
    filter_->filter.noise_variances(rows, have_unknown, noise);
    if (filter_->filter.learns_prior()) return predict_hierarchical(block, first, means, variances);
    filter_->filter.predict(rows, means, variances);
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
