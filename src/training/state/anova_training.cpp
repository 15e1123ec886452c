#include "training/state/anova_training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>

#include "solvers/anova/axes.h"

namespace dyad {
namespace {

/// Limits of the solver. The number of pairs of 200 columns is 19,900; with more columns or levels, low-rank models
/// need fewer rows.
constexpr std::size_t max_anova_columns = 200;

/// Largest number of coefficients of all pairs, and of one pair on the coarsest grid (solvers/anova).
constexpr double max_pair_knots = 2000;
constexpr double min_pair_knots = 36;
/// Bytes per row during the fit, in addition to the row: basis functions of two axes per column (an index and two
/// weights each), and the values of one function per column and of about a hundred pairs.
constexpr double fit_bytes_per_column = 2 * 20 + 8;
constexpr double fit_bytes_per_row = 100 * 8;
/// Share of the memory for the rows and their arrays; the rest is for the sums.
constexpr double cached_row_share = 0.8;
/// Share of the memory up to which a model file contains the cached rows, so that training can be resumed.
constexpr double saved_row_share = 1.0 / 16;
/// Smallest size of the cache.
constexpr Index min_cached_rows = 1000;

/// Missing numbers in an archive, which contains finite numbers only. Scaled numbers are smaller.
constexpr double archived_missing = std::numeric_limits<double>::max();

}  // namespace

std::string anova_obstacle(const FeatureMap& map, double memory) {
  if (map.kind != Kind::gfm || map.layout == Layout::sparse) return "it needs a table or a matrix of the kind gfm";
  if (map.hash_bits > 0) return "it does not use hashed features";
  if (map.columns().size() > max_anova_columns)
    return fmt::format("it is limited to {} columns, and there are {}", max_anova_columns, map.columns().size());
  if (std::none_of(map.columns().begin(), map.columns().end(),
                   [](const Column& column) { return column.role == Column::Role::numeric; }))
    return "no column is numeric";
  // The Gram matrix of all coefficients and three matrices of its size, in doubles.
  constexpr double bytes_per_entry = 32;
  const auto count = static_cast<double>(map.columns().size());
  const double coefficients = static_cast<double>(main_knots(static_cast<Index>(map.columns().size()))) * count +
                              std::min(max_pair_knots, min_pair_knots * count * (count - 1) / 2);
  if (bytes_per_entry * coefficients * coefficients > memory)
    return fmt::format("its sums need {:.0f} MB, more than `memory`",
                       bytes_per_entry * coefficients * coefficients / 1e6);
  std::vector<Index> levels(map.columns().size());
  for (const auto& [column, text] : map.categories(FeatureMap::Side::left))
    if (++levels[column] > max_levels)
      return fmt::format("the column {} has more than {} levels", map.columns()[column].name, max_levels);
  return {};
}

bool allows_anova(const TrainOptions& options) {
  return options.memory > 0 && !options.rank && !options.diagonal && !options.half_life && !options.passes &&
         !options.batch && !options.kind && options.columns.hash_bits == 0;
}

template <typename Scalar>
AnovaTraining<Scalar>::AnovaTraining(const TrainSettings& settings, const FeatureMap& map, double memory,
                                     bool has_counts, ThreadPool& pool, std::function<bool()> interrupted,
                                     FitProgress progress)
    : map_(map),
      pool_(pool),
      interrupted_(std::move(interrupted)),
      progress_(std::move(progress)),
      has_curves_(settings.has_curves),
      memory_(memory),
      has_counts_(has_counts),
      random_(settings.seed, 0),
      table_(ColumnReader(map).empty_table()) {
  const double bytes =
      row_bytes() + fit_bytes_per_row + fit_bytes_per_column * static_cast<double>(table_.columns.size());
  max_rows_ = std::max(min_cached_rows, static_cast<Index>(cached_row_share * memory / bytes));
}

template <typename Scalar>
void AnovaTraining<Scalar>::cache_row(const ColumnTable& block, std::size_t i, double target, double weight) {
  ++rows_seen_;
  if (table_.count() < max_rows_) {
    for (std::size_t c = 0; c < table_.columns.size(); ++c)
      table_.columns[c].values.push_back(block.columns[c].values[i]);
    targets_.push_back(target);
    weights_.push_back(weight);
    return;
  }
  const auto slot = static_cast<Index>(random_.uniform() * static_cast<double>(rows_seen_));
  if (slot >= max_rows_) return;
  const auto at = static_cast<std::size_t>(slot);
  for (std::size_t c = 0; c < table_.columns.size(); ++c) table_.columns[c].values[at] = block.columns[c].values[i];
  targets_[at] = target;
  weights_[at] = weight;
}

template <typename Scalar>
void AnovaTraining<Scalar>::learn(const Rows<Scalar>& rows, std::span<double> predictions) {
  const ColumnReader reader(map_);
  ColumnTable block = reader.empty_table();
  reader.append(rows, block);
  for (Index i = 0; i < rows.count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const auto weight = static_cast<double>(rows.weight(i));
    const auto target = static_cast<double>(rows.targets()[at]);
    predictions[at] = total_weight_ > 0 ? weighted_sum_ / total_weight_ : 0;
    if (!(weight > 0)) continue;
    cache_row(block, at, target, weight);
    weighted_sum_ += weight * target;
    total_weight_ += weight;
  }
}

template <typename Scalar>
const AnovaModel* AnovaTraining<Scalar>::anova() {
  if (!fit_ || 2 * rows_seen_ > 3 * fitted_rows_) fit();
  return &fit_->model;
}

template <typename Scalar>
void AnovaTraining<Scalar>::finish_pass() {
  if (!fit_ || rows_seen_ != fitted_rows_) fit();
}

template <typename Scalar>
bool AnovaTraining<Scalar>::is_constant() const {
  if (!fit_) return false;
  // Functions with a smaller variance change no prediction visibly; 1 is the scale of the target and of log-odds.
  constexpr double min_variance = 1e-9;
  double variance = 0;
  for (const AnovaBlock& block : fit_->model.blocks) variance += block.variance;
  return variance < min_variance;
}

template <typename Scalar>
void AnovaTraining<Scalar>::fit() {
  const Target& target = map_.target;
  AnovaOptions options;
  options.is_classification = likelihood_of(target.task).is_classification();
  options.has_curves = has_curves_;
  if (target.has_low()) options.low = target.scaling.apply(target.low);
  if (target.has_high()) options.high = target.scaling.apply(target.high);
  options.interrupted = interrupted_;
  const auto rows = static_cast<double>(std::max<std::size_t>(1, targets_.size()));
  if (progress_)
    options.progress = [&](const AnovaProgress& step) {
      progress_(step.round, -step.log_evidence / rows, step.held_out * step.held_out);
    };
  // Counts of less than one row in the mean are relative weights, too.
  const double mean_weight = std::accumulate(weights_.begin(), weights_.end(), 0.0) / rows;
  const double unit = has_counts_ && mean_weight >= 1 ? 1 : mean_weight;
  std::vector<double> weights;
  if (std::any_of(weights_.begin(), weights_.end(), [&](double w) { return w != unit; }))
    for (const double weight : weights_) weights.push_back(weight / unit);
  fit_ = fit_anova(table_, targets_, weights, options, pool_);
  fitted_rows_ = rows_seen_;
}

template <typename Scalar>
void AnovaTraining<Scalar>::for_each_fitted(const std::function<void(double, double, double)>& visit) const {
  if (!fit_) return;
  const bool is_classification = likelihood_of(map_.target.task).is_classification();
  // With nearly as many degrees of freedom as rows, the estimate is not reliable and is limited to a factor of 10.
  constexpr double min_residual_share = 0.1;
  const double cached_weight = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  const double scale =
      is_classification ? 1 : 1 / std::max(min_residual_share, 1 - (fit_->effective_dof + 1) / cached_weight);
  std::vector<double> predictions(targets_.size());
  fit_->model.predict(table_, predictions);
  for (std::size_t i = 0; i < targets_.size(); ++i)
    visit(targets_[i], targets_[i] + scale * (predictions[i] - targets_[i]), weights_[i]);
}

template <typename Scalar>
void AnovaTraining<Scalar>::archive(Archive& archive) {
  archive.group("anova", [&] {
    const bool is_saved = static_cast<double>(table_.count()) * row_bytes() <= saved_row_share * memory_;
    Index rows = is_saved ? table_.count() : 0;
    archive.number("rows", rows);
    archive.number("rows_seen", rows_seen_);
    archive.number("weighted_sum", weighted_sum_);
    archive.number("total_weight", total_weight_);
    if (archive.is_loading() && rows == 0)
      throw std::runtime_error(
          "the file does not contain the rows of the model, because they take more than 1/16 of "
          "`memory`; train again with all rows");
    if (rows == 0) return;
    for (std::size_t c = 0; c < table_.columns.size(); ++c) {
      std::vector<double>& values = table_.columns[c].values;
      const std::string name = "column." + std::to_string(c);
      if (archive.is_loading()) {
        archive.vector(name, values, rows);
        for (double& value : values)
          if (value == archived_missing) value = std::numeric_limits<double>::quiet_NaN();
      } else {
        std::vector<double> finite = values;
        for (double& value : finite)
          if (std::isnan(value)) value = archived_missing;
        archive.vector(name, finite, rows);
      }
    }
    archive.vector("targets", targets_, rows);
    archive.vector("weights", weights_, rows);
  });
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::plan() const {
  return fmt::format("anova: functions of {} columns and of pairs, with variances by REML", table_.columns.size());
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::origin() const {
  if (!fit_) return plan();
  return fmt::format("smoothing-spline ANOVA: {} functions, {:.1f} effective degrees of freedom",
                     fit_->model.blocks.size(), fit_->effective_dof);
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::warning() const {
  if (rows_seen_ > table_.count())
    return fmt::format(
        "the model is fitted to a random sample of {} of {} rows, which fit in `memory`; raise it "
        "to use more rows",
        table_.count(), rows_seen_);
  if (static_cast<double>(table_.count()) * row_bytes() > saved_row_share * memory_)
    return "the rows take more than 1/16 of `memory` and are not stored in the model file, so training cannot be "
           "resumed";
  return {};
}

template <typename Scalar>
double AnovaTraining<Scalar>::noise() const {
  return fit_ ? std::sqrt(fit_->model.posterior.noise_variance) : 0;
}

template class AnovaTraining<float>;
template class AnovaTraining<double>;

}  // namespace dyad
