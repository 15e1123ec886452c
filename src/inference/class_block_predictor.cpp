#include "inference/class_block_predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <dyad/error.h>

namespace dyad {
namespace {

constexpr double no_bound = std::numeric_limits<double>::max();

/// Whether both maps encode rows as the same features, up to the bounds of numbers.
bool have_same_features(const FeatureMap& left, const FeatureMap& right) {
  return left.layout == right.layout && left.kind == right.kind && left.hash_bits == right.hash_bits &&
         left.dim() == right.dim() && left.left_dim() == right.left_dim() &&
         std::equal(left.columns().begin(), left.columns().end(), right.columns().begin(), right.columns().end(),
                    [](const Column& a, const Column& b) {
                      return a.name == b.name && a.role == b.role && a.is_right == b.is_right &&
                             a.scaling.center == b.scaling.center && a.scaling.scale == b.scaling.scale;
                    });
}

/// Bounds of the scaled value of each feature.
struct FeatureBounds {
  explicit FeatureBounds(const FeatureMap& map) {
    for (const Scaling& scaling : map.scalings()) {
      low.push_back((scaling.low - scaling.center) / scaling.scale);
      high.push_back((scaling.high - scaling.center) / scaling.scale);
      clips = clips || scaling.low > -no_bound || scaling.high < no_bound;
    }
  }
  void apply(std::size_t feature, double& value) const {
    if (feature < low.size()) value = std::clamp(value, low[feature], high[feature]);
  }

  std::vector<double> low;
  std::vector<double> high;
  bool clips = false;
};

}  // namespace

LoadedClassModels::LoadedClassModels(ClassModels content, std::string name)
    : content_(std::move(content)), name_(std::move(name)) {
  for (const std::string& part : content_.parts) {
    files_.push_back(ModelFile::from_bytes(part, name_));
    if (files_.back().features.target.task != Task::classification ||
        !have_same_features(files_.front().features, files_.back().features))
      throw DataError(name_, 0, 0,
                      "the model of several classes is damaged: its models are not classifiers of the same features; "
                      "use a backup copy, or train again");
  }
  error_bars_.resize(files_.size());
}

const ErrorBars& LoadedClassModels::error_bars(std::size_t index) {
  const std::lock_guard lock(mutex_);
  if (!error_bars_[index]) error_bars_[index] = std::make_unique<ErrorBars>(files_[index], name_);
  return *error_bars_[index];
}

FeatureMap LoadedClassModels::make_reader_map() const {
  FeatureMap map = ModelFile::from_bytes(content_.parts.front(), name_).features;
  for (std::size_t c = 0; c < map.columns().size(); ++c)
    if (map.columns()[c].role == Column::Role::numeric) map.set_clipping(c, -no_bound, no_bound);
  map.target.set_classes(content_.labels, -1);
  return map;
}

ClassBlockPredictor::ClassBlockPredictor(LoadedClassModels& models, const DataOptions& data, int threads,
                                         const PredictHooks& hooks, TableEncoder::Targets targets, bool deviations)
    : models_(models),
      pool_(threads),
      map_(models.make_reader_map()),
      reader_(map_, {.data = data,
                     .columns = {},
                     .targets = targets,
                     .unknown = TableEncoder::UnknownFeatures::ignore,
                     .interrupted = hooks.interrupted,
                     .threads = threads}),
      computes_variances_(deviations) {}

bool ClassBlockPredictor::next(PredictSummary& summary) {
  const auto next = reader_.next(block_);
  if (next == RowReader<double>::Next::interrupted) summary.outcome = Outcome::interrupted;
  if (next != RowReader<double>::Next::block) return false;
  const std::size_t size = block_.lines.size() * models_.count();
  log_odds_.resize(size);
  variances_.resize(computes_variances_ ? size : 0);
  for (std::size_t c = 0; c < models_.count(); ++c) predict_class(c);
  for (const auto* numbers : {&log_odds_, &variances_}) {
    const auto invalid = std::find_if(numbers->begin(), numbers->end(), [](double x) { return !std::isfinite(x); });
    if (invalid != numbers->end())
      throw DataError(
          block_.file, block_.lines[static_cast<std::size_t>(invalid - numbers->begin()) / models_.count()], 0,
          "the prediction is not finite; the values of the row are too far outside the range of the training rows");
  }
  summary.rows += block_.count();
  summary.unknown_cells += static_cast<Index>(block_.unknown_cells.size());
  return true;
}

const RowBlock<double>& ClassBlockPredictor::clipped_block(std::size_t index) {
  const FeatureBounds bounds(models_.files()[index].features);
  if (!bounds.clips) return block_;
  clipped_ = block_;
  const auto dim = static_cast<std::size_t>(clipped_.dim);
  for (std::size_t e = 0; e < clipped_.values.size(); ++e)
    bounds.apply(clipped_.is_dense ? e % dim : static_cast<std::size_t>(clipped_.columns[e]), clipped_.values[e]);
  return clipped_;
}

void ClassBlockPredictor::predict_class(std::size_t index) {
  const ModelFile& file = models_.files()[index];
  const bool uses_posterior = ErrorBars::predicts_by_posterior(file);
  const ErrorBars* error_bars = uses_posterior || computes_variances_ ? &models_.error_bars(index) : nullptr;
  const RowBlock<double>& block = clipped_block(index);
  const Rows<double> rows = block.view();
  const auto predict_range = [&](IndexRange range) {
    const auto first = static_cast<std::size_t>(range.first);
    std::vector<double> values(static_cast<std::size_t>(range.count));
    const auto scatter = [&](std::vector<double>& target) {
      for (std::size_t i = 0; i < values.size(); ++i) target[(first + i) * models_.count() + index] = values[i];
    };
    if (uses_posterior)
      error_bars->posterior_predictors(block, range.first, values);
    else
      file.predict(rows.slice(range.first, range.count), values);
    scatter(log_odds_);
    if (!computes_variances_) return;
    std::vector<double> noise(values.size());
    error_bars->compute_variances(block, range.first, values, noise);
    scatter(variances_);
  };
  // As in BlockPredictor::for_each_row_range().
  constexpr Index min_rows_per_thread = 64;
  if (block.count() < 2 * min_rows_per_thread) return predict_range({0, block.count()});
  pool_.split(block.count(), [&](int, IndexRange range) { predict_range(range); });
}

void ClassBlockPredictor::finish(PredictSummary& summary) const {
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  summary.task = Task::classification;
  summary.classes = models_.content().labels;
}

void softmax(std::span<double> log_odds, double temperature) {
  const double largest = *std::max_element(log_odds.begin(), log_odds.end());
  double sum = 0;
  for (double& value : log_odds) sum += value = std::exp(temperature * (value - largest));
  for (double& value : log_odds) value /= sum;
}

void softmax_deviations(std::span<const double> probabilities, std::span<const double> variances, double temperature,
                        std::span<double> deviations) {
  double common = 0;  // sum_k p_k^2 variance_k
  for (std::size_t k = 0; k < probabilities.size(); ++k) common += probabilities[k] * probabilities[k] * variances[k];
  for (std::size_t c = 0; c < probabilities.size(); ++c) {
    const double p = probabilities[c];
    // (1 - p)^2 = p^2 + 1 - 2p
    deviations[c] = temperature * p * std::sqrt(std::max(0.0, common + (1 - 2 * p) * variances[c]));
  }
}

}  // namespace dyad
