#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include <dyad/evaluate.h>

#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/error_bars.h"
#include "serialization/model_file.h"

namespace dyad {

/// Predicts rows from files or from memory, one block at a time. Not thread-safe; several objects may share a model.
class BlockPredictor {
 public:
  /// Does not own the model; the caller keeps it alive. `targets`: whether rows must have targets. `error_bars`: the
  /// error bars of the model, which the caller keeps alive. If nullptr, the constructor loads them if
  /// options.deviations is set or if predictions are averaged over the posterior.
  BlockPredictor(ModelFile& file, const PredictOptions& options, const PredictHooks& hooks,
                 TableEncoder::Targets targets, const ErrorBars* error_bars = nullptr);

  /// values() are then scaled targets or log-odds, without limits.
  void omit_link() { applies_link_ = false; }

  [[nodiscard]] const Target& target() const { return file_.features.target; }

  /// Predicts the next block and updates the row counts of the summary. False at the end of the rows or if interrupted.
  bool next(PredictSummary& summary);

  /// Predictions for the rows of block(): in the units of the target, or the probability of the positive class.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  /// Standard deviations of the target including noise, or of the probability. Empty unless requested.
  [[nodiscard]] const std::vector<double>& deviations() const { return deviations_; }
  [[nodiscard]] const RowBlock<double>& block() const { return block_; }

  /// Completes the summary: time, task, labels and warnings.
  void finish(PredictSummary& summary) const;

 private:
  /// Splits the rows of the block over the threads if there are enough of them.
  void for_each_row_range(const std::function<void(IndexRange)>& task);
  void require_finite(const std::vector<double>& numbers) const;

  ModelFile& file_;
  ThreadPool pool_;
  RowReader<double> reader_;
  RowBlock<double> block_;
  std::vector<double> values_;
  std::optional<ErrorBars> owned_error_bars_;
  bool predicts_by_posterior_;  ///< ErrorBars::predicts_by_posterior()
  bool computes_deviations_;
  bool applies_link_ = true;
  const ErrorBars* error_bars_;  ///< nullptr: not needed
  std::vector<double> deviations_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Evaluates a model that is not in a file. Targets outside TrainOptions::range are not rejected.
EvaluateSummary evaluate(ModelFile file, const PredictOptions& options, const PredictHooks& hooks);

}  // namespace dyad
