#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dyad/evaluate.h>

#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/error_bars.h"
#include "serialization/model_file.h"

namespace dyad {

/// Predicts rows from files or from memory, several blocks at the same time. Not thread-safe; several objects may share
/// a model.
class BlockPredictor {
 public:
  /// Predictions for the rows of a block.
  struct Predictions {
    std::vector<double> values;      ///< in the units of the target, or the probability of the positive class
    std::vector<double> deviations;  ///< of the target including noise, or of the probability; empty unless requested
    std::string text;                ///< that `format` has written
  };
  /// Writes Predictions::text. Called in several threads at the same time.
  using Format = std::function<void(Predictions& predictions)>;

  /// Does not own the model; the caller keeps it alive. `targets`: whether rows must have targets. `error_bars`: the
  /// error bars of the model, which the caller keeps alive. If nullptr, the constructor loads them if
  /// options.deviations is set or if predictions are averaged over the posterior.
  BlockPredictor(ModelFile& file, const PredictOptions& options, const PredictHooks& hooks,
                 TableEncoder::Targets targets, const ErrorBars* error_bars = nullptr, Format format = {});

  /// Predictions::values are then scaled targets or log-odds, without limits. Before the first next().
  void omit_link() { applies_link_ = false; }

  [[nodiscard]] const Target& target() const { return file_.features.target; }

  /// Predicts the next block and updates the row counts of the summary. False at the end of the rows or if interrupted.
  bool next(PredictSummary& summary);

  /// Of the rows of block().
  [[nodiscard]] const Predictions& predictions() const { return *predictions_; }
  [[nodiscard]] const RowBlock<double>& block() const { return block_; }

  /// Completes the summary: time, task, labels and warnings.
  void finish(PredictSummary& summary) const;

 private:
  [[nodiscard]] std::shared_ptr<Predictions> predict(const RowBlock<double>& block);
  /// Splits the rows of the block over the threads of the pool if there are enough of them, and if the reader uses
  /// none.
  void for_each_row_range(Index count, const std::function<void(IndexRange)>& task);
  static void require_finite(const RowBlock<double>& block, const std::vector<double>& numbers);

  ModelFile& file_;
  Format format_;
  ThreadPool pool_;
  std::optional<ErrorBars> owned_error_bars_;
  bool predicts_by_posterior_;  ///< ErrorBars::predicts_by_posterior()
  bool computes_deviations_;
  bool applies_link_ = true;
  const ErrorBars* error_bars_;  ///< nullptr: not needed
  RowReader<double> reader_;
  RowBlock<double> block_;
  std::shared_ptr<const Predictions> predictions_ = std::make_shared<Predictions>();
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Evaluates a model that is not in a file. Targets outside TrainOptions::range are not rejected.
EvaluateSummary evaluate(ModelFile file, const PredictOptions& options, const PredictHooks& hooks);

}  // namespace dyad
