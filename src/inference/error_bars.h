#pragma once

#include <span>
#include <string>

#include "data/row_block.h"
#include "serialization/model_file.h"
#include "solvers/kalman/unknown_features.h"

namespace dyad {

/// Variances of predictions under the posterior of a trained model (solvers/kalman). A cell with a category or
/// index that is not in the model adds the variance of its group (UnknownFeatures). Thread-safe after construction.
class ErrorBars {
 public:
  /// Copies the posterior from `file`. `path` is used in error messages. Throws std::invalid_argument if the model has
  /// no posterior, and DataError if the posterior is damaged.
  ErrorBars(const ModelFile& file, const std::string& path);

  /// Writes the variances of the linear predictor (scaled target, or log-odds) of the rows
  /// [first, first + variances.size()) of a block, without observation noise.
  void compute_variances(const RowBlock<double>& block, Index first, std::span<double> variances) const;

  /// Variance of the observation noise of the scaled target.
  [[nodiscard]] double noise_variance() const { return filter_.noise_variance(); }

 private:
  KalmanFilter<double> filter_;
  UnknownFeatures unknown_features_;
};

}  // namespace dyad
