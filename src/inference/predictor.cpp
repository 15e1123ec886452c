#include <dyad/predictor.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "inference/inspect.h"
#include "inference/prediction.h"

namespace dyad {

struct Predictor::Implementation {
  explicit Implementation(ModelFile of) : file(std::move(of)) { file.features.target.range_is_given = false; }

  /// Loaded at the first use.
  const ErrorBars& error_bars() {
    const std::lock_guard lock(mutex);
    if (!bars) bars.emplace(file, "memory");
    return *bars;
  }

  ModelFile file;  ///< predictions read it only
  std::mutex mutex;
  std::optional<ErrorBars> bars;
};

Predictor::Predictor(std::unique_ptr<Implementation> own) : own_(std::move(own)) {}
Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

Predictor Predictor::load(const std::string& path) {
  return Predictor(std::make_unique<Implementation>(ModelFile::load(path)));
}

Predictor Predictor::from_bytes(const std::string& bytes, const std::string& file) {
  return Predictor(std::make_unique<Implementation>(ModelFile::from_bytes(bytes, file)));
}

PredictSummary Predictor::predict(const MemoryRows& rows, std::span<double> values, std::span<double> deviations,
                                  int threads, const PredictHooks& hooks) const {
  const auto count = static_cast<std::size_t>(rows.count);
  if (values.size() != count || (!deviations.empty() && deviations.size() != count))
    throw std::invalid_argument("there must be a place for the prediction of each row");
  PredictOptions options;
  options.data.memory = &rows;
  options.deviations = !deviations.empty();
  options.threads = threads;
  Prediction prediction(own_->file, options, hooks, TableEncoder::Targets::none,
                        options.deviations ? &own_->error_bars() : nullptr);
  PredictSummary summary;
  std::size_t done = 0;
  while (prediction.next(summary)) {
    std::copy(prediction.values().begin(), prediction.values().end(), values.begin() + static_cast<Index>(done));
    std::copy(prediction.deviations().begin(), prediction.deviations().end(),
              deviations.begin() + static_cast<Index>(options.deviations ? done : 0));
    done += prediction.values().size();
  }
  prediction.finish(summary);
  return summary;
}

Inspection Predictor::inspect(Index top) const { return dyad::inspect(own_->file, top); }

const Model<double>& Predictor::model() const { return own_->file.model; }

std::vector<std::string> Predictor::feature_names() const {
  std::vector<std::string> names;
  for (Index j = 0; j < own_->file.model.dim(); ++j) names.push_back(own_->file.features.name(j));
  return names;
}

Layout Predictor::layout() const { return own_->file.features.layout; }
Kind Predictor::kind() const { return own_->file.features.kind; }

std::vector<std::string> Predictor::column_names() const {
  if (layout() == Layout::sparse) return feature_names();
  std::vector<std::string> names;
  for (const Column& column : own_->file.features.columns()) names.push_back(column.name);
  return names;
}

std::vector<std::string> Predictor::categorical_columns() const {
  std::vector<std::string> names;
  for (const Column& column : own_->file.features.columns())
    if (column.role == Column::Role::category) names.push_back(column.name);
  return names;
}

Task Predictor::task() const { return own_->file.features.target.task; }

std::string Predictor::warning() const { return own_->file.warning; }

std::vector<std::string> Predictor::labels() const {
  const Target& target = own_->file.features.target;
  if (!likelihood_of(target.task).is_classification()) return {};
  return {target.negative, target.positive};
}

}  // namespace dyad
