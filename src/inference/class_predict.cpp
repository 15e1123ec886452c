#include <dyad/class_predictor.h>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <dyad/error.h>
#include <dyad/text.h>

#include "base/output_file.h"
#include "base/peak_memory.h"
#include "inference/class_block_predictor.h"
#include "inference/class_metrics.h"

namespace dyad {

struct ClassPredictor::Implementation {
  Implementation(const std::string& bytes, const std::string& file)
      : models(ClassModels::from_bytes(bytes, file), file) {}

  /// Calls visit(predictor, position) for each block, where `position` is the first entry of its results.
  template <typename Visit>
  PredictSummary for_each_block(const DatasetView& rows, int threads, const PredictHooks& hooks, bool deviations,
                                Visit&& visit) {
    DataOptions data;
    data.dataset = &rows;
    ClassBlockPredictor predictor(models, data, threads, hooks, TableEncoder::Targets::none, deviations);
    PredictSummary summary;
    for (Index done = 0; predictor.next(summary); done = summary.rows * static_cast<Index>(models.count()))
      visit(predictor, done);
    predictor.finish(summary);
    return summary;
  }

  LoadedClassModels models;  ///< changes only by the creation of error bars, which is thread-safe
};

namespace {

/// Replaces the log-odds of all rows of a block by probabilities.
std::vector<double> block_probabilities(const ClassBlockPredictor& predictor, const ClassModels& content) {
  std::vector<double> probabilities = predictor.log_odds();
  const std::size_t classes = content.labels.size();
  for (std::size_t first = 0; first < probabilities.size(); first += classes)
    softmax(std::span(probabilities).subspan(first, classes), content.temperature);
  return probabilities;
}

std::vector<double> block_deviations(const ClassBlockPredictor& predictor, const std::vector<double>& probabilities,
                                     const ClassModels& content) {
  std::vector<double> deviations(probabilities.size());
  const std::size_t classes = content.labels.size();
  for (std::size_t first = 0; first < probabilities.size(); first += classes)
    softmax_deviations(std::span(probabilities).subspan(first, classes),
                       std::span(predictor.variances()).subspan(first, classes), content.temperature,
                       std::span(deviations).subspan(first, classes));
  return deviations;
}

}  // namespace

PredictSummary predict_classes(const std::string& model, const PredictOptions& options, const PredictHooks& hooks) {
  LoadedClassModels models(ClassModels::from_bytes(model, options.model_path), options.model_path);
  ClassBlockPredictor predictor(models, options.data, options.threads, hooks, TableEncoder::Targets::none,
                                options.deviations);
  const std::size_t classes = models.count();
  std::vector<std::string> labels;
  for (const std::string& label : models.content().labels) labels.push_back(escape_text(label));
  PredictSummary summary;
  OutputFile output(options.output_path);
  fmt::memory_buffer text;
  while (predictor.next(summary)) {
    text.clear();
    const std::vector<double> probabilities = block_probabilities(predictor, models.content());
    const std::vector<double> deviations =
        options.deviations ? block_deviations(predictor, probabilities, models.content()) : std::vector<double>();
    for (std::size_t first = 0; first < probabilities.size(); first += classes) {
      const auto row = probabilities.begin() + static_cast<Index>(first);
      const auto end = row + static_cast<Index>(classes);
      if (options.labels) {
        const auto best = static_cast<std::size_t>(std::max_element(row, end) - row);
        fmt::format_to(std::back_inserter(text), "{}", labels[best]);
        if (options.deviations) fmt::format_to(std::back_inserter(text), ",{}", deviations[first + best]);
      } else {
        fmt::format_to(std::back_inserter(text), "{}", fmt::join(row, end, ","));
        for (std::size_t c = 0; options.deviations && c < classes; ++c)
          fmt::format_to(std::back_inserter(text), ",{}", deviations[first + c]);
      }
      text.push_back('\n');
    }
    output.write({text.data(), text.size()});
  }
  if (summary.outcome != Outcome::interrupted) output.commit();
  predictor.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  return summary;
}

EvaluateSummary evaluate_classes(const std::string& model, const PredictOptions& options, const PredictHooks& hooks) {
  LoadedClassModels models(ClassModels::from_bytes(model, options.model_path), options.model_path);
  ClassBlockPredictor predictor(models, options.data, options.threads, hooks, TableEncoder::Targets::needed, false);
  EvaluateSummary summary;
  ClassMetricSums sums(models.content().labels);
  while (predictor.next(summary)) {
    const RowBlock<double>& block = predictor.block();
    const std::vector<double> probabilities = block_probabilities(predictor, models.content());
    for (std::size_t i = 0; i < block.lines.size(); ++i)
      sums.add(static_cast<std::size_t>(block.targets[i]),
               std::span(probabilities).subspan(i * models.count(), models.count()),
               block.weights.empty() ? 1 : block.weights[i]);
  }
  predictor.finish(summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  if (summary.outcome == Outcome::interrupted) return summary;
  if (!(sums.weight() > 0))
    throw DataError(options.data.name(), 0, 0,
                    summary.rows == 0 ? "the data has no rows; expected at least one row to evaluate the model on"
                                      : "all rows have weight 0; expected at least one row with a positive weight");
  summary.metrics = sums.metrics();
  return summary;
}

ClassPredictor::ClassPredictor(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
ClassPredictor::~ClassPredictor() = default;
ClassPredictor::ClassPredictor(ClassPredictor&&) noexcept = default;
ClassPredictor& ClassPredictor::operator=(ClassPredictor&&) noexcept = default;

ClassPredictor ClassPredictor::load(const std::string& path) { return from_bytes(ModelFile::read_bytes(path), path); }

ClassPredictor ClassPredictor::from_bytes(const std::string& bytes, const std::string& file) {
  return ClassPredictor(std::make_unique<Implementation>(bytes, file));
}

PredictSummary ClassPredictor::predict(const DatasetView& rows, std::span<double> probabilities,
                                       std::span<double> deviations, int threads, const PredictHooks& hooks) const {
  const std::size_t size = static_cast<std::size_t>(rows.count) * implementation_->models.count();
  if (probabilities.size() != size || (!deviations.empty() && deviations.size() != size))
    throw std::invalid_argument(
        "probabilities, and deviations unless empty, must have one entry for each row and class");
  const ClassModels& content = implementation_->models.content();
  return implementation_->for_each_block(
      rows, threads, hooks, !deviations.empty(), [&](const ClassBlockPredictor& predictor, Index first) {
        const std::vector<double> block = block_probabilities(predictor, content);
        std::copy(block.begin(), block.end(), probabilities.begin() + first);
        if (deviations.empty()) return;
        const std::vector<double> errors = block_deviations(predictor, block, content);
        std::copy(errors.begin(), errors.end(), deviations.begin() + first);
      });
}

PredictSummary ClassPredictor::predict_scores(const DatasetView& rows, std::span<double> scores, int threads,
                                              const PredictHooks& hooks) const {
  if (scores.size() != static_cast<std::size_t>(rows.count) * implementation_->models.count())
    throw std::invalid_argument("scores must have one entry for each row and class");
  return implementation_->for_each_block(
      rows, threads, hooks, false, [&](const ClassBlockPredictor& predictor, Index first) {
        std::transform(predictor.log_odds().begin(), predictor.log_odds().end(), scores.begin() + first,
                       [&](double value) { return temperature() * value; });
      });
}

const std::vector<std::string>& ClassPredictor::labels() const { return implementation_->models.content().labels; }
std::string ClassPredictor::label_type() const { return implementation_->models.content().label_type(); }
double ClassPredictor::temperature() const { return implementation_->models.content().temperature; }

Predictor ClassPredictor::class_model(std::size_t index) const {
  return Predictor::from_bytes(implementation_->models.content().parts.at(index));
}

}  // namespace dyad
