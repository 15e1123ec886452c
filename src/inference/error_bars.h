#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/row_block.h"
#include "encoding/column_reader.h"
#include "serialization/model_file.h"
#include "solvers/kalman/unknown_features.h"

namespace dyad {

/// Variances of predictions under the posterior of a trained model: that of an AnovaModel, a SampledPosterior, or a
/// filter (solvers/kalman). A cell with a category or index that is not in the model adds the variance of the functions
/// of its column, or of its group (UnknownFeatures). Thread-safe after construction.
class ErrorBars {
 public:
  /// Does not own `file`, which must outlive this object. `path` is used in error messages.
  /// Throws std::invalid_argument if the model has no posterior, and DataError if the posterior is damaged.
  ErrorBars(const ModelFile& file, const std::string& path);

  /// Whether predictions of the model use its posterior (posterior_predictors()), unless the model is a constant: for
  /// averages of samples, for classes learned in one pass with a hierarchical prior, and for groups whose means
  /// contribute to predictions with unknown features and are not absorbed into the intercept.
  [[nodiscard]] static bool predicts_by_posterior(const ModelFile& file);

  /// Writes the linear predictors of the rows [first, first + predictors.size()) of a block, averaged over the
  /// posterior (Likelihood::posterior_predictor). Call it only if predicts_by_posterior().
  void posterior_predictors(const RowBlock<double>& block, Index first, std::span<double> predictors) const;

  /// Writes the variances of the linear predictor (scaled target, or log-odds) of the rows
  /// [first, first + variances.size()) of a block, without observation noise, and the variances of the noise of the
  /// scaled target.
  void compute_variances(const RowBlock<double>& block, Index first, std::span<double> variances,
                         std::span<double> noise) const;

 private:
  struct FilterPosterior {
    KalmanFilter<double> filter;
    UnknownFeatures unknown_features;
  };

  /// Calls visit(i, prediction) for the rows [first, first + count) of a block. For averages of samples.
  template <typename Visit>
  void for_each_sampled(const RowBlock<double>& block, Index first, Index count, Visit&& visit) const;
  /// Predictions and variances of a filter with a hierarchical prior.
  void predict_hierarchical(const RowBlock<double>& block, Index first, std::span<double> predictions,
                            std::span<double> variances) const;
  /// Variance that the unknown cells of row i add.
  [[nodiscard]] double unknown_variance(const Rows<double>& rows, Index i, const std::vector<Index>& groups) const;

  const ModelFile& file_;
  std::optional<AnovaModel> anova_;
  std::optional<ColumnReader> reader_;     ///< of `anova_`
  std::optional<FilterPosterior> filter_;  ///< null for an AnovaModel
  std::vector<Index> prior_groups_;        ///< group of the filter for each group of the feature map
};

}  // namespace dyad
