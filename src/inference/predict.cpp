#include <dyad/evaluate.h>

#include <stdexcept>

#include <fmt/compile.h>

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
  const Target& target = file.features.target;
  const std::string negative = escape_text(target.negative);
  const std::string positive = escape_text(target.positive);
  // Numbers have the fewest digits that parse to the same double.
  const auto format = [&](BlockPredictor::Predictions& predictions) {
    const auto text = std::back_inserter(predictions.text);
    for (std::size_t i = 0; i < predictions.values.size(); ++i) {
      if (options.labels)
        predictions.text += predictions.values[i] > 0.5 ? positive : negative;
      else
        fmt::format_to(text, FMT_COMPILE("{}"), predictions.values[i]);
      if (options.deviations) fmt::format_to(text, FMT_COMPILE(",{}"), predictions.deviations[i]);
      predictions.text += '\n';
    }
  };
  BlockPredictor predictor(file, options, hooks, TableEncoder::Targets::none, nullptr, format);
  if (options.labels && !likelihood_of(target.task).is_classification())
    throw std::invalid_argument("labels requires a classification model, but this is a regression model");
  PredictSummary summary;
  OutputFile output(options.output_path);
  while (predictor.next(summary)) output.write(predictor.predictions().text);
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
    const std::vector<double>& values = predictor.predictions().values;
    for (std::size_t i = 0; i < values.size(); ++i)
      sums.add(target.observed(block.targets[i]), values[i], block.weights.empty() ? 1 : block.weights[i]);
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
