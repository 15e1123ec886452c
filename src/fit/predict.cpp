#include <dyad/predict.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>

#include <dyad/data_error.h>

#include "base/logistic.h"
#include "base/output_file.h"
#include "base/workers.h"
#include "fit/metrics.h"
#include "fit/peak_memory.h"
#include "fit/row_reader.h"
#include "fit/train_solver.h"
#include "model/model_file.h"

namespace dyad {
namespace {

/// Runs the rows through the model, a block at a time.
class Prediction {
 public:
  Prediction(const PredictOptions& options, const PredictHooks& hooks, TableEncoder::Targets targets)
      : file_(loaded(options.model_path)),
        workers_(options.threads),
        reader_(file_.features, {.data = options.data,
                                 .columns = {},
                                 .targets = targets,
                                 .unknown = TableEncoder::Unknown::is_left_out,
                                 .interrupted = hooks.interrupted}) {
    if (options.deviations) posterior_.emplace(posterior_of(file_, options.model_path));
  }

  [[nodiscard]] const Target& target() const { return file_.features.target; }

  /// False at the end. `values`: in the units of the target, or probabilities.
  bool next(PredictSummary& summary) {
    const auto next = reader_.next(block_);
    if (next == RowReader<double>::Next::interrupted) summary.outcome = Outcome::interrupted;
    if (next != RowReader<double>::Next::block) return false;
    const Rows<double> rows = block_.view();
    values_.resize(static_cast<std::size_t>(rows.count()));
    workers_.split(rows.count(), [&](int, Share share) {
      const auto own =
          std::span(values_).subspan(static_cast<std::size_t>(share.first), static_cast<std::size_t>(share.count));
      file_.model.predict(rows.slice(share.first, share.count), own);
      for (double& value : own) value = in_units_of_target(value);
    });
    if (posterior_) find_deviations(rows);
    require_finite(values_);
    require_finite(deviations_);
    summary.rows += rows.count();
    summary.unknown_cells += block_.unknown_cells;
    return true;
  }

  [[nodiscard]] const std::vector<double>& values() const { return values_; }
  [[nodiscard]] const std::vector<double>& deviations() const { return deviations_; }
  [[nodiscard]] const RowBlock<double>& block() const { return block_; }

  void finish(PredictSummary& summary) const {
    summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    summary.peak_rss_bytes = peak_rss_bytes();
    summary.task = target().task;
    summary.positive = target().positive;
  }

 private:
  /// What lies outside of the range is measured like everything else.
  static ModelFile loaded(const std::string& path) {
    ModelFile file = ModelFile::load(path);
    file.features.target.range_is_given = false;
    return file;
  }

  void require_finite(const std::vector<double>& numbers) const {
    const auto bad = std::find_if(numbers.begin(), numbers.end(), [](double number) { return !std::isfinite(number); });
    if (bad != numbers.end())
      throw DataError(block_.file, block_.lines[static_cast<std::size_t>(bad - numbers.begin())], 0,
                      "the prediction is not finite, expected values of a size that the model has seen");
  }

  void find_deviations(const Rows<double>& rows) {
    deviations_.resize(values_.size());
    std::vector<double> means(values_.size());
    workers_.split(rows.count(), [&](int, Share share) {
      const auto first = static_cast<std::size_t>(share.first);
      const auto count = static_cast<std::size_t>(share.count);
      posterior_->predict(rows.slice(share.first, share.count), std::span(means).subspan(first, count),
                          std::span(deviations_).subspan(first, count));
    });
    const bool classes = target().task == Task::classification;
    for (std::size_t i = 0; i < deviations_.size(); ++i) {
      const double variance = deviations_[i] + (classes ? 0 : posterior_->noise_variance());
      deviations_[i] = std::sqrt(variance) * (classes ? values_[i] * (1 - values_[i]) : target().scaling.scale);
    }
  }

  [[nodiscard]] double in_units_of_target(double value) const {
    return target().task == Task::regression ? target().prediction_in_units(value) : logistic(value);
  }

  ModelFile file_;
  Workers workers_;
  RowReader<double> reader_;
  RowBlock<double> block_;
  std::vector<double> values_;
  std::optional<KalmanFilter<double>> posterior_;
  std::vector<double> deviations_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

void PredictOptions::validate() const {
  (void)data.format_of_all();
  if (model_path.empty()) throw std::invalid_argument("a model is needed: -m MODEL");
  for (const std::string& path : data.paths)
    if (path != "-" && is_same_file(path, output_path))
      throw std::invalid_argument("the predictions would be written over the data in " + path);
  if (is_same_file(output_path, model_path))
    throw std::invalid_argument("the predictions would be written over the model");
  Workers::require_possible(threads);
}

PredictSummary predict(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  Prediction prediction(options, hooks, TableEncoder::Targets::none);
  const Target& target = prediction.target();
  if (options.labels && target.task == Task::regression)
    throw std::invalid_argument("the model predicts numbers, which have no labels; leave --labels out");
  PredictSummary summary;
  OutputFile output(options.output_path);
  fmt::memory_buffer text;
  while (prediction.next(summary)) {
    text.clear();
    for (std::size_t i = 0; i < prediction.values().size(); ++i) {
      const double value = prediction.values()[i];
      if (options.labels)
        fmt::format_to(std::back_inserter(text), "{}", value > 0.5 ? target.positive : target.negative);
      else
        fmt::format_to(std::back_inserter(text), "{}", value);
      if (options.deviations) fmt::format_to(std::back_inserter(text), ",{}", prediction.deviations()[i]);
      text.push_back('\n');
    }
    output.write({text.data(), text.size()});
  }
  if (summary.outcome != Outcome::interrupted) output.commit();
  prediction.finish(summary);
  return summary;
}

EvaluateSummary evaluate(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  Prediction prediction(options, hooks, TableEncoder::Targets::needed);
  const Target& target = prediction.target();
  EvaluateSummary summary;
  MetricSums sums(target.task);
  while (prediction.next(summary)) {
    const RowBlock<double>& block = prediction.block();
    for (std::size_t i = 0; i < prediction.values().size(); ++i) {
      const double y =
          target.task == Task::classification ? (block.targets[i] > 0 ? 1 : 0) : target.in_units(block.targets[i]);
      sums.add(y, prediction.values()[i], block.weights.empty() ? 1 : block.weights[i]);
    }
  }
  prediction.finish(summary);
  if (summary.rows == 0 && summary.outcome != Outcome::interrupted)
    throw DataError(options.data.paths.front(), 0, 0, "there is no row in it, expected rows to measure the model on");
  if (summary.rows > 0 && sums.weight() == 0)
    throw DataError(options.data.paths.front(), 0, 0, "all rows have weight 0, expected some that count");
  summary.metrics = sums.metrics();
  return summary;
}

}  // namespace dyad
