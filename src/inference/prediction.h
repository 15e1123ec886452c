#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include <dyad/predict.h>

#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/error_bars.h"
#include "serialization/model_file.h"

namespace dyad {

/// Predicts the rows of files or of memory, one block at a time. Not thread-safe; several objects may share a model.
class Prediction {
 public:
  /// Does not own the model; the caller keeps it alive. `error_bars`: those of the model, if they have been read
  /// before.
  Prediction(ModelFile& file, const PredictOptions& options, const PredictHooks& hooks, TableEncoder::Targets targets,
             const ErrorBars* error_bars = nullptr);

  [[nodiscard]] const Target& target() const { return file_.features.target; }

  /// Predicts the next block. False at the end of the rows.
  bool next(PredictSummary& summary);

  /// In the units of the target, or probabilities.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  /// Standard deviations, noise included; empty unless asked for.
  [[nodiscard]] const std::vector<double>& deviations() const { return deviations_; }
  [[nodiscard]] const RowBlock<double>& block() const { return block_; }

  void finish(PredictSummary& summary) const;

 private:
  /// Splits the rows of the block over the threads, unless they are few.
  void for_each_share(const std::function<void(Share)>& task);
  void require_finite(const std::vector<double>& numbers) const;

  ModelFile& file_;
  ThreadPool pool_;
  RowReader<double> reader_;
  RowBlock<double> block_;
  std::vector<double> values_;
  std::optional<ErrorBars> own_error_bars_;
  const ErrorBars* error_bars_;
  std::vector<double> deviations_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Measures a model that is not in a file. Targets outside the range of training are measured like all others.
EvaluateSummary evaluate(ModelFile file, const PredictOptions& options, const PredictHooks& hooks);

}  // namespace dyad
