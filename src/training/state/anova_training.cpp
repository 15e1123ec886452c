#include "training/state/anova_training.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/error.h>

#include "encoding/column_reader.h"
#include "solvers/anova/basis/axes.h"
#include "solvers/anova/sums_fit.h"

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
/// Share of the memory up to which a model file contains the cached rows or the sums, so that training can be resumed.
constexpr double saved_share = 1.0 / 16;
/// Rows that are added to the sums at once. The cost per addition is that of clearing tables of the size of the sums,
/// a few percent of that of this number of rows.
constexpr Index sums_block_rows = 8192;
/// The fit of the random sample replaces that of the sums if its loss is smaller by this factor. The estimated loss of
/// the sample is too small by less than that, because it does not account for the selection of pairs.
constexpr double order_margin = 0.98;
/// Smallest size of the cache.
constexpr Index min_cached_rows = 1000;

/// Number of rows that fit in the memory.
Index max_cached_rows(const FeatureMap& map, double memory) {
  const auto columns = static_cast<double>(map.columns().size());
  const double row_bytes = (columns + 2) * sizeof(double);
  const double bytes = row_bytes + fit_bytes_per_row + fit_bytes_per_column * columns;
  return std::max(min_cached_rows, static_cast<Index>(cached_row_share * memory / bytes));
}

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
  return {};
}

bool has_many_levels(const FeatureMap& map) {
  std::vector<Index> levels(map.columns().size());
  for (Index number = 0; number < map.category_count(FeatureMap::Side::left); ++number)
    if (++levels[map.category(FeatureMap::Side::left, number).column] > max_anova_levels) return true;
  return false;
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
      sample_(ColumnReader(map).empty_table(), max_cached_rows(map, memory), settings.seed),
      bounds_(map) {
  pending_.table = sample_.rows.table;
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
    if (!reference_ && sample_.is_full()) start_sums();
    sample_.add(block, at, target, weight);
    if (reference_) pending_.append(block, at, target, weight);
    if (pending_.count() == sums_block_rows) flush();
    weighted_sum_ += weight * target;
    total_weight_ += weight;
  }
}

template <typename Scalar>
void AnovaTraining<Scalar>::start_sums() {
  reference_ = fit_cached_rows(false);
  sums_ = BasisSums(reference_->model);
  add_to_sums(*reference_, sample_.rows, sums_);
}

template <typename Scalar>
void AnovaTraining<Scalar>::add_to_sums(const AnovaFit& reference, const AnovaRows& rows, BasisSums& sums) {
  sums.add(reference.model, rows.table, rows.targets, rows.weights_in_units(weight_unit_),
           ResponseLink(make_options(false)), pool_);
}

template <typename Scalar>
void AnovaTraining<Scalar>::flush() {
  if (pending_.count() == 0) return;
  bounds_.clip(pending_.table);
  add_to_sums(*reference_, pending_, sums_);
  pending_.clear();
}

template <typename Scalar>
const AnovaModel* AnovaTraining<Scalar>::anova() {
  if (!fit_ || 2 * sample_.rows_seen > 3 * fitted_rows_) fit();
  return &fit_->model;
}

template <typename Scalar>
void AnovaTraining<Scalar>::finish_pass() {
  if (fit_ && sample_.rows_seen == fitted_rows_) return;
  fit();
  if (reference_ && has_sample_ && !was_interrupted()) check_order();
}

template <typename Scalar>
void AnovaTraining<Scalar>::check_order() {
  const double sums_loss = cached_loss(fit_->model);
  const ColumnBounds sums_bounds = bounds_;
  are_bounds_set_ = false;
  AnovaFit sample = fit_cached_rows(true);
  const auto rows = static_cast<double>(sample_.rows.count());
  // The log-loss of the training rows is too small by the degrees of freedom per row (Akaike 1974), the squared error
  // by the factor of generalized cross-validation.
  const bool is_classification = likelihood_of(map_.target.task).is_classification();
  const double sample_loss = is_classification ? cached_loss(sample.model) + sample.effective_dof / rows
                                               : sample.held_out_loss * sample.held_out_loss;
  if (sample.was_interrupted || !(sample_loss < order_margin * sums_loss)) {
    bounds_ = sums_bounds;
    return;
  }
  is_order_harmful_ = true;
  fit_ = std::move(sample);
  reference_.reset();
  sums_ = BasisSums();
}

template <typename Scalar>
double AnovaTraining<Scalar>::cached_loss(const AnovaModel& model) const {
  const AnovaRows& rows = sample_.rows;
  std::vector<double> predictions(rows.targets.size());
  ColumnTable clipped = rows.table;
  bounds_.clip(clipped);
  model.predict(clipped, predictions);
  const Likelihood& likelihood = likelihood_of(map_.target.task);
  double sum = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const double residual = rows.targets[i] - predictions[i];
    sum += rows.weights[i] *
           (likelihood.is_classification() ? likelihood.loss(rows.targets[i], predictions[i]) : residual * residual);
  }
  return sum / rows.total_weight();
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
AnovaOptions AnovaTraining<Scalar>::make_options(bool reports) const {
  AnovaOptions options = anova_options(map_.target);
  options.has_curves = has_curves_;
  options.interrupted = interrupted_;
  const auto rows = static_cast<double>(std::max<Index>(1, sample_.rows.count()));
  if (progress_ && reports)
    options.progress = [this, rows](const AnovaProgress& step) {
      progress_(step.round, -step.log_evidence / rows, step.held_out * step.held_out);
    };
  return options;
}

template <typename Scalar>
AnovaFit AnovaTraining<Scalar>::fit_cached_rows(bool reports) {
  AnovaRows& rows = sample_.rows;
  if (!std::exchange(are_bounds_set_, true)) {
    bounds_.extend(rows.table);
    bounds_.clip(rows.table);
  }
  // Counts of less than one row in the mean are relative weights, too.
  const double mean_weight = rows.total_weight() / static_cast<double>(std::max<Index>(1, rows.count()));
  weight_unit_ = has_counts_ && mean_weight >= 1 ? 1 : mean_weight;
  return fit_anova(rows.table, rows.targets, rows.weights_in_units(weight_unit_), make_options(reports), pool_);
}

template <typename Scalar>
void AnovaTraining<Scalar>::fit() {
  if (reference_) {
    flush();
    fit_ = fit_sums(reference_->model, reference_->prior, sums_, make_options(true));
  } else {
    fit_ = fit_cached_rows(true);
  }
  fitted_rows_ = sample_.rows_seen;
}

template <typename Scalar>
void AnovaTraining<Scalar>::for_each_fitted(const std::function<void(double, double, double)>& visit) const {
  if (!fit_) return;
  const bool is_classification = likelihood_of(map_.target.task).is_classification();
  // With nearly as many degrees of freedom as rows, the estimate is not reliable and is limited to a factor of 10.
  constexpr double min_residual_share = 0.1;
  const AnovaRows& rows = sample_.rows;
  const double weight = reference_ ? total_weight_ : rows.total_weight();
  const double scale = is_classification ? 1 : 1 / std::max(min_residual_share, 1 - (fit_->effective_dof + 1) / weight);
  std::vector<double> predictions(rows.targets.size());
  fit_->model.predict(rows.table, predictions);
  for (std::size_t i = 0; i < predictions.size(); ++i)
    visit(rows.targets[i], rows.targets[i] + scale * (predictions[i] - rows.targets[i]), rows.weights[i]);
}

template <typename Scalar>
bool AnovaTraining<Scalar>::stores_rows() const {
  return has_sample_ && sample_.is_complete() &&
         static_cast<double>(sample_.rows.count()) * row_bytes() <= saved_share * memory_;
}

template <typename Scalar>
bool AnovaTraining<Scalar>::stores_sums(const AnovaModel& model) const {
  return static_cast<double>(sizeof(double)) * BasisSums::archived_numbers(model) <= saved_share * memory_;
}

template <typename Scalar>
void AnovaTraining<Scalar>::archive(Archive& archive) {
  archive.group("anova", [&] {
    AnovaFit functions;
    bool has_functions = false;
    if (const auto& source = reference_ ? reference_ : fit_; source && !archive.is_loading()) {
      static_cast<AnovaFunctions&>(functions.model) = source->model;
      functions.model.log_noise = source->model.log_noise;
      functions.prior = source->prior;
      has_functions = true;
    }
    Index rows = stores_rows() ? sample_.rows.count() : 0;
    bool has_sums = rows == 0 && has_functions && stores_sums(functions.model);
    archive.number("rows", rows);
    archive.number("has_functions", has_functions);
    archive.number("has_sums", has_sums);
    archive.number("rows_seen", sample_.rows_seen);
    archive.number("weighted_sum", weighted_sum_);
    archive.number("total_weight", total_weight_);
    archive.number("weight_unit", weight_unit_);
    if (archive.is_loading() && rows == 0 && !has_sums)
      throw std::runtime_error(
          "the file contains neither the rows nor the sums of the model, because they take more than 1/16 of "
          "`memory`; train again with all rows");
    if (archive.is_loading()) are_bounds_set_ = true;  // the map of the model contains them
    if (has_functions) archive_anova_functions(archive, functions);
    if (rows > 0) sample_.rows.archive(archive, rows);
    if (has_sums) archive_sums(archive, std::move(functions));
  });
}

template <typename Scalar>
void AnovaTraining<Scalar>::archive_sums(Archive& archive, AnovaFit reference) {
  BasisSums sums(reference.model);
  if (archive.is_loading()) {
    sums.archive(archive);
    reference_ = std::move(reference);
    sums_ = std::move(sums);
    has_sample_ = false;
  } else if (reference_) {
    flush();
    sums_.archive(archive);
  } else {
    add_to_sums(reference, sample_.rows, sums);
    sums.archive(archive);
  }
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::plan() const {
  return fmt::format("anova: functions of {} columns and of pairs, with variances by REML", map_.columns().size());
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::origin() const {
  if (!fit_) return plan();
  return fmt::format("smoothing-spline ANOVA: {} functions, {:.1f} effective degrees of freedom{}",
                     fit_->model.blocks.size(), fit_->effective_dof,
                     reference_ ? fmt::format(", from sums over {} rows", sample_.rows_seen) : std::string());
}

template <typename Scalar>
std::string AnovaTraining<Scalar>::warning() const {
  if (is_order_harmful_)
    return fmt::format(
        "the order of the rows matters: functions that were selected on the first {} rows predict other rows worse "
        "than the model, which is fitted to a random sample of {} of {} rows; shuffle the rows, or raise `memory` to "
        "cache more of them",
        sample_.max_rows(), sample_.rows.count(), sample_.rows_seen);
  if (fit_ && !stores_rows() && !stores_sums(reference_ ? reference_->model : fit_->model))
    return "the sums of the functions take more than 1/16 of `memory` and are not stored in the model file, so "
           "training "
           "cannot be resumed";
  return {};
}

template <typename Scalar>
double AnovaTraining<Scalar>::noise() const {
  return fit_ ? std::sqrt(fit_->model.posterior.noise_variance) : 0;
}

template <typename Scalar>
void AnovaTraining<Scalar>::replace_rows_by_sums(AnovaFit functions) {
  if (reference_) return;
  reference_ = std::move(functions);
  sums_ = BasisSums(reference_->model);
  add_to_sums(*reference_, sample_.rows, sums_);
  sample_.rows.clear();
  has_sample_ = false;
}

template <typename Scalar>
void AnovaTraining<Scalar>::set_sums(AnovaFit reference, BasisSums sums, AnovaFit fit, Index rows) {
  sample_.rows_seen = fitted_rows_ = rows;
  has_sample_ = false;
  total_weight_ = sums.weight();
  weighted_sum_ = total_weight_ * sums.mean();
  reference_ = std::move(reference);
  sums_ = std::move(sums);
  fit_ = std::move(fit);
}

AnovaOptions anova_options(const Target& target) {
  AnovaOptions options;
  options.is_classification = likelihood_of(target.task).is_classification();
  if (target.has_low()) options.low = target.scaling.apply(target.low);
  if (target.has_high()) options.high = target.scaling.apply(target.high);
  return options;
}

void archive_anova_functions(Archive& archive, AnovaFit& fit) {
  archive.group("functions", [&] {
    archive_functions(archive, fit.model);
    archive.group("log_noise", [&] { archive_functions(archive, fit.model.log_noise); });
    fit.prior.archive(archive, fit.model);
  });
}

AnovaFit load_anova_functions(const ModelFile& file, const std::string& name) {
  AnovaFit result;
  Archive archive(file.state);
  try {
    archive.group("anova", [&] { archive_anova_functions(archive, result); });
  } catch (const std::runtime_error& error) {
    throw DataError(name, 0, 0, error.what());
  }
  return result;
}

std::optional<BasisSums> load_anova_sums(const ModelFile& file, const AnovaFit& functions) {
  Archive archive(file.state);
  std::optional<BasisSums> result;
  archive.group("anova", [&] {
    bool has_sums = false;
    if (archive.has("has_sums")) archive.number("has_sums", has_sums);
    if (has_sums) result.emplace(functions.model).archive(archive);
  });
  return result;
}

template class AnovaTraining<float>;
template class AnovaTraining<double>;

}  // namespace dyad
