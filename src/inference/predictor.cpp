#include <dyad/predictor.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "inference/block_predictor.h"
#include "inference/explain.h"
#include "inference/inspect.h"

namespace dyad {

struct Predictor::Implementation {
  explicit Implementation(ModelFile loaded) : file(std::move(loaded)) { file.features.target.is_range_given = false; }

  /// Loaded at first use. Thread-safe.
  const ErrorBars& error_bars() {
    const std::lock_guard lock(mutex);
    if (!error_bars_) error_bars_.emplace(file, "memory");
    return *error_bars_;
  }

  ModelFile file;  ///< not modified after construction, so that predict() is thread-safe
  std::mutex mutex;
  std::optional<ErrorBars> error_bars_;
};

Predictor::Predictor(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Predictor Predictor::load(const std::string& path) {
  return Predictor(std::make_unique<Implementation>(ModelFile::load(path)));
}

Predictor Predictor::from_bytes(const std::string& bytes, const std::string& file) {
  return Predictor(std::make_unique<Implementation>(ModelFile::from_bytes(bytes, file)));
}

PredictSummary Predictor::predict(const DatasetView& rows, std::span<double> values, std::span<double> deviations,
                                  int threads, const PredictHooks& hooks) const {
  const auto count = static_cast<std::size_t>(rows.count);
  if (values.size() != count || (!deviations.empty() && deviations.size() != count))
    throw std::invalid_argument("values, and deviations unless empty, must have one entry per row");
  PredictOptions options;
  options.data.dataset = &rows;
  options.deviations = !deviations.empty();
  options.threads = threads;
  BlockPredictor block_predictor(implementation_->file, options, hooks, TableEncoder::Targets::none,
                                 options.deviations || ErrorBars::predicts_by_posterior(implementation_->file)
                                     ? &implementation_->error_bars()
                                     : nullptr);
  PredictSummary summary;
  std::size_t done = 0;
  while (block_predictor.next(summary)) {
    const BlockPredictor::Predictions& predictions = block_predictor.predictions();
    std::copy(predictions.values.begin(), predictions.values.end(), values.begin() + static_cast<Index>(done));
    std::copy(predictions.deviations.begin(), predictions.deviations.end(),
              deviations.begin() + static_cast<Index>(options.deviations ? done : 0));
    done += predictions.values.size();
  }
  block_predictor.finish(summary);
  return summary;
}

PredictSummary Predictor::predict_log_odds(const DatasetView& rows, std::span<double> values, int threads,
                                           const PredictHooks& hooks) const {
  if (values.size() != static_cast<std::size_t>(rows.count))
    throw std::invalid_argument("values must have one entry per row");
  if (!likelihood_of(task()).is_classification())
    throw std::invalid_argument("log-odds require a classification model, but this is a regression model");
  PredictOptions options;
  options.data.dataset = &rows;
  options.threads = threads;
  ModelFile& file = implementation_->file;
  BlockPredictor predictor(file, options, hooks, TableEncoder::Targets::none,
                           ErrorBars::predicts_by_posterior(file) ? &implementation_->error_bars() : nullptr);
  predictor.omit_link();
  PredictSummary summary;
  for (Index done = 0; predictor.next(summary); done = summary.rows)
    std::copy(predictor.predictions().values.begin(), predictor.predictions().values.end(), values.begin() + done);
  predictor.finish(summary);
  return summary;
}

Explanation Predictor::explain(const DatasetView& rows, int threads, const PredictHooks& hooks) const {
  ModelFile& file = implementation_->file;
  return dyad::explain(file, ErrorBars::predicts_by_posterior(file) ? &implementation_->error_bars() : nullptr, rows,
                       threads, hooks);
}

Inspection Predictor::inspect(Index top) const { return dyad::inspect(implementation_->file, top); }

bool Predictor::is_anova() const { return implementation_->file.anova.has_value(); }

const Model<double>& Predictor::model() const {
  if (is_anova())
    throw std::invalid_argument(
        "an ANOVA model has functions of columns and pairs (inspect) instead of weights and factors; set `rank` to "
        "train a "
        "low-rank model");
  return implementation_->file.model;
}

std::vector<std::string> Predictor::feature_names() const {
  std::vector<std::string> names;
  for (Index j = 0; j < implementation_->file.features.dim(); ++j)
    names.push_back(implementation_->file.features.name(j));
  return names;
}

Layout Predictor::layout() const { return implementation_->file.features.layout; }
Kind Predictor::kind() const { return implementation_->file.features.kind; }

std::vector<std::string> Predictor::column_names() const {
  if (layout() == Layout::sparse) return feature_names();
  std::vector<std::string> names;
  for (const Column& column : implementation_->file.features.columns()) names.push_back(column.name);
  return names;
}

std::vector<std::string> Predictor::categorical_columns() const {
  std::vector<std::string> names;
  for (const Column& column : implementation_->file.features.columns())
    if (column.role == Column::Role::categorical) names.push_back(column.name);
  return names;
}

Task Predictor::task() const { return implementation_->file.features.target.task; }

std::string Predictor::warning() const { return implementation_->file.warning; }

std::vector<std::string> Predictor::labels() const {
  const Target& target = implementation_->file.features.target;
  if (!likelihood_of(target.task).is_classification()) return {};
  return {target.negative, target.positive};
}

}  // namespace dyad
