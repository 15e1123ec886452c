#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dyad/evaluate.h>

#include "base/thread_pool.h"
#include "encoding/sources/row_reader.h"
#include "inference/error_bars.h"
#include "serialization/class_models.h"
#include "serialization/model_file.h"

namespace dyad {

/// Parsed model of more than two classes. Thread-safe after construction.
class LoadedClassModels {
 public:
  /// `name`: of the model in error messages.
  LoadedClassModels(ClassModels content, std::string name);

  [[nodiscard]] const ClassModels& content() const { return content_; }
  [[nodiscard]] const std::vector<ModelFile>& files() const { return files_; }
  [[nodiscard]] std::size_t count() const { return files_.size(); }
  /// Error bars of the model of a class, created at first use. Throws std::invalid_argument if it has no variances.
  const ErrorBars& error_bars(std::size_t index);
  /// Map of the rows, whose numbers are not clipped and whose targets are the indices of the classes.
  [[nodiscard]] FeatureMap make_reader_map() const;

 private:
  ClassModels content_;
  std::string name_;
  std::vector<ModelFile> files_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ErrorBars>> error_bars_;
};

/// Predicts rows of files or of memory with the models of all classes, one block at a time. The rows are read and
/// encoded once. Not thread-safe; several objects may share the models.
class ClassBlockPredictor {
 public:
  /// Does not own the models; the caller keeps them alive. `deviations`: compute variances(), too.
  ClassBlockPredictor(LoadedClassModels& models, const DataOptions& data, int threads, const PredictHooks& hooks,
                      TableEncoder::Targets targets, bool deviations);

  /// Predicts the next block and updates the row counts of the summary. False at the end of the rows or if interrupted.
  bool next(PredictSummary& summary);

  /// Log-odds of each class against the others for the rows of block(), row-major.
  [[nodiscard]] const std::vector<double>& log_odds() const { return log_odds_; }
  /// Variances of log_odds(), without noise. Empty unless requested.
  [[nodiscard]] const std::vector<double>& variances() const { return variances_; }
  [[nodiscard]] const RowBlock<double>& block() const { return block_; }

  /// Completes the summary: time, task, labels and warnings.
  void finish(PredictSummary& summary) const;

 private:
  void predict_class(std::size_t index);
  /// block_ with the numbers clipped to the bounds of the model of a class.
  const RowBlock<double>& clipped_block(std::size_t index);

  LoadedClassModels& models_;
  ThreadPool pool_;
  FeatureMap map_;
  RowReader<double> reader_;
  RowBlock<double> block_;
  RowBlock<double> clipped_;
  bool computes_variances_;
  std::vector<double> log_odds_;
  std::vector<double> variances_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Replaces the log-odds of one row by probabilities: the softmax of temperature * log-odds.
void softmax(std::span<double> log_odds, double temperature);

/// Standard deviations of the probabilities p of one row by linearization, for independent log-odds with these
/// variances: var(p_c) = p_c^2 sum_k (delta_ck - p_k)^2 temperature^2 variance_k.
void softmax_deviations(std::span<const double> probabilities, std::span<const double> variances, double temperature,
                        std::span<double> deviations);

/// predict() for a model of more than two classes.
PredictSummary predict_classes(const std::string& model, const PredictOptions& options, const PredictHooks& hooks);
/// evaluate() for a model of more than two classes.
EvaluateSummary evaluate_classes(const std::string& model, const PredictOptions& options, const PredictHooks& hooks);

}  // namespace dyad
