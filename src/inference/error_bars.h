#pragma once

#include <span>
#include <string>

#include "data/row_block.h"
#include "serialization/model_file.h"
#include "solvers/kalman/unknown_features.h"

namespace dyad {

/// Variances of the predictions of a trained model: of what the parameters leave open, and of cells whose category or
/// index the model does not know. Thread-safe once it is made.
class ErrorBars {
 public:
  /// Does not keep the file. `path` is for messages. Throws std::invalid_argument if the model has no posterior, and
  /// DataError if it is damaged.
  ErrorBars(const ModelFile& file, const std::string& path);

  /// Of the rows [first, first + variances.size()) of a block: without the noise; classes: of the log-odds.
  void find_variances(const RowBlock<double>& block, Index first, std::span<double> variances) const;

  [[nodiscard]] double noise_variance() const { return filter_.noise_variance(); }

 private:
  KalmanFilter<double> filter_;
  UnknownFeatures unknown_;
};

}  // namespace dyad
