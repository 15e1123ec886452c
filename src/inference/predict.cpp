#include <dyad/predict.h>

#include <stdexcept>

#include <fmt/format.h>

#include <dyad/data_error.h>
#include <dyad/text.h>

#include "base/file_paths.h"
#include "base/output_file.h"
#include "base/peak_memory.h"
#include "inference/metrics.h"
#include "inference/prediction.h"

namespace dyad {

void PredictOptions::validate() const {
  (void)data.format_of_all();
  data.limits.validate();
  if (model_path.empty()) throw std::invalid_argument("a model is needed: -m MODEL");
  std::vector<NamedFile> inputs = input_files(data);
  inputs.push_back({model_path, "the model"});
  require_distinct_files({{output_path, "the predictions"}}, inputs);
  ThreadPool::require_possible(threads);
}

PredictSummary predict(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  ModelFile file = ModelFile::load(options.model_path);
  file.features.target.range_is_given = false;
  Prediction prediction(file, options, hooks, TableEncoder::Targets::none);
  const Target& target = prediction.target();
  if (options.labels && !likelihood_of(target.task).is_classification())
    throw std::invalid_argument("the model predicts numbers, which have no labels; leave --labels out");
  PredictSummary summary;
  OutputFile output(options.output_path);
  fmt::memory_buffer text;
  const std::string negative = escape_text(target.negative);
  const std::string positive = escape_text(target.positive);
  while (prediction.next(summary)) {
    text.clear();
    for (std::size_t i = 0; i < prediction.values().size(); ++i) {
      const double value = prediction.values()[i];
      if (options.labels)
        fmt::format_to(std::back_inserter(text), "{}", value > 0.5 ? positive : negative);
      else
        fmt::format_to(std::back_inserter(text), "{}", value);
      if (options.deviations) fmt::format_to(std::back_inserter(text), ",{}", prediction.deviations()[i]);
      text.push_back('\n');
    }
    output.write({text.data(), text.size()});
  }
  if (summary.outcome != Outcome::interrupted) output.commit();
  prediction.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  return summary;
}

EvaluateSummary evaluate(const PredictOptions& options, const PredictHooks& hooks) {
  options.validate();
  return evaluate(ModelFile::load(options.model_path), options, hooks);
}

EvaluateSummary evaluate(ModelFile file, const PredictOptions& options, const PredictHooks& hooks) {
  file.features.target.range_is_given = false;
  Prediction prediction(file, options, hooks, TableEncoder::Targets::needed);
  const Target& target = prediction.target();
  EvaluateSummary summary;
  MetricSums sums(target.task);
  while (prediction.next(summary)) {
    const RowBlock<double>& block = prediction.block();
    for (std::size_t i = 0; i < prediction.values().size(); ++i) {
      sums.add(target.observed(block.targets[i]), prediction.values()[i], block.weights.empty() ? 1 : block.weights[i]);
    }
  }
  prediction.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  if (summary.outcome == Outcome::interrupted) return summary;
  if (summary.rows == 0)
    throw DataError(options.data.name(), 0, 0, "there is no row in it, expected rows to measure the model on");
  if (sums.weight() == 0)
    throw DataError(options.data.name(), 0, 0, "all rows have weight 0, expected some that count");
  summary.metrics = sums.metrics();
  return summary;
}

}  // namespace dyad
