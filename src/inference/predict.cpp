#include <dyad/evaluate.h>

#include <stdexcept>

#include <fmt/format.h>

#include <dyad/error.h>
#include <dyad/text.h>

#include "base/file_paths.h"
#include "base/output_file.h"
#include "base/peak_memory.h"
#include "inference/block_predictor.h"
#include "inference/class_block_predictor.h"
#include "inference/metrics.h"

namespace dyad {

void PredictOptions::validate() const {
  (void)data.resolve_format();
  data.limits.validate();
  if (model_path.empty()) throw std::invalid_argument("model_path is empty; expected the path of a model file");
  std::vector<NamedFile> inputs = input_files(data);
  inputs.push_back({model_path, "the model"});
  require_distinct_files({{output_path, "the predictions"}}, inputs);
  ThreadPool::require_valid_count(threads);
}

PredictSummary predict(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  const std::string model = ModelFile::read_bytes(options.model_path);
  if (ClassModels::is_class_file(model)) return predict_classes(model, options, hooks);
  ModelFile file = ModelFile::from_bytes(model, options.model_path);
  file.features.target.is_range_given = false;
  BlockPredictor predictor(file, options, hooks, TableEncoder::Targets::none);
  const Target& target = predictor.target();
  if (options.labels && !likelihood_of(target.task).is_classification())
    throw std::invalid_argument("labels requires a classification model, but this is a regression model");
  PredictSummary summary;
  OutputFile output(options.output_path);
  fmt::memory_buffer text;
  const std::string negative = escape_text(target.negative);
  const std::string positive = escape_text(target.positive);
  while (predictor.next(summary)) {
    text.clear();
    for (std::size_t i = 0; i < predictor.values().size(); ++i) {
      const double value = predictor.values()[i];
      if (options.labels)
        fmt::format_to(std::back_inserter(text), "{}", value > 0.5 ? positive : negative);
      else
        fmt::format_to(std::back_inserter(text), "{}", value);
      if (options.deviations) fmt::format_to(std::back_inserter(text), ",{}", predictor.deviations()[i]);
      text.push_back('\n');
    }
    output.write({text.data(), text.size()});
  }
  if (summary.outcome != Outcome::interrupted) output.commit();
  predictor.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  return summary;
}

EvaluateSummary evaluate(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  const std::string model = ModelFile::read_bytes(options.model_path);
  if (ClassModels::is_class_file(model)) return evaluate_classes(model, options, hooks);
  return evaluate(ModelFile::from_bytes(model, options.model_path), options, hooks);
}

EvaluateSummary evaluate(ModelFile file, const PredictOptions& options, const PredictHooks& hooks) {
  file.features.target.is_range_given = false;
  BlockPredictor predictor(file, options, hooks, TableEncoder::Targets::needed);
  const Target& target = predictor.target();
  EvaluateSummary summary;
  MetricSums sums(target.task);
  while (predictor.next(summary)) {
    const RowBlock<double>& block = predictor.block();
    for (std::size_t i = 0; i < predictor.values().size(); ++i) {
      sums.add(target.observed(block.targets[i]), predictor.values()[i], block.weights.empty() ? 1 : block.weights[i]);
    }
  }
  predictor.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  if (summary.outcome == Outcome::interrupted) return summary;
  if (summary.rows == 0)
    throw DataError(options.data.name(), 0, 0,
                    "the data has no rows; expected at least one row to evaluate the model on");
  if (sums.weight() == 0)
    throw DataError(options.data.name(), 0, 0,
                    "all rows have weight 0; expected at least one row with a positive weight");
  summary.metrics = sums.metrics();
  return summary;
}

}  // namespace dyad
