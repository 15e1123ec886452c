#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <dyad/train.h>

#include "encoding/sources/row_stream.h"
#include "training/constant_probability.h"
#include "training/one_pass/further_passes.h"
#include "training/progress_reporter.h"

namespace dyad {

/// Fills the summary of a training run: metrics, the origin of the model, and warnings with their remedies. Does not
/// own its arguments; the caller keeps them alive. Not thread-safe.
template <typename Scalar>
class TrainReport {
 public:
  TrainReport(const TrainOptions& options, const TrainState<Scalar>& state) : options_(options), state_(state) {}

  TrainSummary summary;
  /// The model is one of several classes. Progressive losses and the choice of the solver are then not reported.
  bool is_part_of_classes = false;

  void warn(std::string text) { summary.warnings.push_back(std::move(text)); }

  /// Adds the first block of the run.
  void add_first_block(const RowBlock<Scalar>& block) {
    first_rows_ = block.count();
    has_constant_first_block_ =
        std::adjacent_find(block.targets.begin(), block.targets.end(), std::not_equal_to<>()) == block.targets.end();
  }

  /// Returns the argument of TrainHooks::start. `plan`: appended to the plan of the solver.
  [[nodiscard]] TrainStart start(Index first_rows, const std::string& plan) const {
    const Target& target = map().target;
    TrainStart start;
    start.task = target.task;
    start.kind = map().kind;
    start.rank = state_.settings.rank;
    start.diagonal = *state_.settings.diagonal;
    start.features = map().seen_count();
    for (const Column& column : map().columns())
      (column.role == Column::Role::numeric ? start.numeric : start.categorical).push_back(column.name);
    start.target = target.name;
    start.negative = target.negative;
    start.positive = target.positive;
    start.plan = state_.solver->plan() + plan;
    start.low = target.low;
    start.high = target.high;
    start.has_low = target.has_low();
    start.has_high = target.has_high();
    start.first_rows = first_rows;
    start.rows_before = state_.settings.rows;
    return start;
  }

  /// Adds the end of the first pass. `outliers`: number of rows that were not learned because of their norm.
  void add_first_pass(const ProgressReporter& progress, Index outliers) {
    summary.progressive = progress.all().metrics();
    summary.metrics = progress.recent();
    if (!progress.is_predicted()) {
      clear_metrics(summary.progressive);
      const Target& target = map().target;
      MetricSums sums(target.task);
      state_.solver->for_each_fitted([&](double y, double predictor, double weight) {
        sums.add(target.observed(y), target.predicted(predictor), weight);
      });
      summary.metrics = sums.weight() > 0 ? sums.metrics() : summary.progressive;
    } else if (progress.order_predicts_targets()) {
      remove_progressive_metrics();
    }
    warn_about_targets(progress);
    if (outliers > 0)
      warn(
          fmt::format("{} rows have a Euclidean norm of more than 1000 times the median; they were predicted but not "
                      "learned from (check their values)",
                      outliers));
    warn_about_features();
    if (!state_.solver->warning().empty()) warn(state_.solver->warning());
    const Solver solver = state_.settings.solver;
    summary.solver = solver == Solver::moment || solver == Solver::anova ? solver : Solver::kalman;
    summary.origin = state_.solver->origin();
    summary.noise = noise_in_units();
  }

  /// Adds the end of multi-pass training. If its model is used, the solver already contains it.
  void add_multi_pass(const MultiPassResult<Scalar>& result, const MultiPassTraining<Scalar>& multi_pass) {
    if (result.exceeds_work_limit)
      warn(
          "multi-pass training on this many rows would take too long, so the model comes from one pass; request it "
          "with the solver sampling (sparse rows) or newton");
    if (result.held_out_rows > 0)
      summary.held_out = HeldOutLosses{in_units(result.one_pass), in_units(result.multi_pass), result.held_out_rows};
    if (!result.filter) {
      if (options_.requests_multiple_passes() && multi_pass.skip_reason().empty())
        warn("multi-pass training needs at least 10 rows and a finite fit, so the model comes from one pass");
      return;
    }
    if (options_.passes && result.levels + 1 < *options_.passes)
      warn(fmt::format("training ended after {} passes, because the weakest regularization was reached",
                       result.levels + 1));
    if (summary.held_out && !(result.multi_pass < result.one_pass) && !result.interrupted && !is_part_of_classes)
      warn(
          "one pass has a smaller loss on held-out rows than the requested solver; leave out `solver` to use the "
          "better model");
    summary.passes = 1 + result.levels;
    if (result.sampled) summary.samples = result.sampled->samples;
    summary.solver = multi_pass.solver();
    summary.origin = fmt::format("multi-pass training on all rows: {}", result.level);
    summary.noise = noise_in_units();
  }

  /// Replaces the results of the low-rank model by those of the ANOVA model. `held_out`: its mean held-out loss.
  void replace_by_anova(double held_out) {
    if (summary.held_out) summary.held_out->multi_pass = in_units(held_out);
    summary.solver = Solver::anova;
    summary.origin = state_.solver->origin();
    summary.noise = noise_in_units();
    if (!state_.solver->warning().empty()) warn(state_.solver->warning());
  }

  /// Adds the remedy for the order of the rows.
  void add_order_remedy(OrderRemedy remedy) {
    summary.order = remedy;
    if (remedy == OrderRemedy::none) return;
    const std::string reason =
        "the order of the rows hurts one pass (rows that were learned early are predicted worse at the end than before "
        "they were learned); ";
    if (remedy == OrderRemedy::shuffled)
      warn(reason + "the cached rows were learned again in random order; shuffle the file to save this pass");
    else if (remedy == OrderRemedy::sample)
      warn(reason +
           "the model was trained on a uniform sample of the rows, because they are not cached; shuffle the rows, or "
           "train on a file with more than one pass and enough `memory`");
    else
      warn(reason + "shuffle the rows, or train on a file with more than one pass and enough `memory`");
    summary.origin = state_.solver->origin();
    summary.noise = noise_in_units();
  }

  /// Adds the end of further passes of the filter. If their model is used, the solver already contains it.
  void add_further_passes(const FurtherPassesResult<Scalar>& result) {
    summary.row_reads += result.row_reads;
    if (result.held_out_rows == 0)
      return warn("further passes need at least 20 held-out rows; the model comes from one pass");
    summary.held_out = HeldOutLosses{in_units(result.one_pass), in_units(result.best), result.held_out_rows};
    summary.passes = result.passes;
    if (!result.filter) return;
    summary.origin = fmt::format("{} passes of the Kalman filter", result.passes);
    summary.noise = noise_in_units();
  }

  /// Adds the diagnosis of measurements, with a warning if the fit may be wrong.
  void add_diagnosis(const std::optional<FitDiagnosis>& diagnosis) {
    if (!diagnosis) return;
    summary.status = diagnosis->status;
    summary.status_text = status_text(diagnosis->status, diagnosis->outliers);
    summary.outliers = diagnosis->outliers;
    if (diagnosis->noise == 0) summary.noise = 0;  // exact fit
    if (diagnosis->status != FitStatus::converged) warn(summary.status_text);
    if (!map().is_measurement()) return;  // features of other models are standardized
    const double scale = map().target.scaling.scale;
    const RowMajorMatrix<double> matrix_errors = scale * diagnosis->matrix_errors;
    const Vector<double> factor_errors = std::sqrt(scale) * diagnosis->factor_errors;
    summary.matrix_errors.assign(matrix_errors.data(), matrix_errors.data() + matrix_errors.size());
    summary.factor_errors.assign(factor_errors.data(), factor_errors.data() + factor_errors.size());
  }

  /// Adds whether the model is a constant, with the reason as a warning.
  void add_constant(const ConstantProbability<Scalar>& constant, bool is_target_constant) {
    const bool lacks_evidence = constant.replaces_model();
    summary.is_constant = lacks_evidence || state_.solver->is_constant();
    if (!summary.is_constant || is_target_constant || summary.outcome == Outcome::interrupted) return;
    if (state_.solver->is_constant()) return warn(state_.solver->constant_reason());
    warn(
        fmt::format("the model is a constant probability: on rows that were not used for training, the features gain "
                    "{:.1f} nats of log-likelihood over the best constant, and at least {:g} are needed to "
                    "distinguish a gain from chance; add rows of the rarer class",
                    std::max(0.0, constant.nats()), ClassEvidence::required_nats));
  }

  /// The reported form of a mean loss. Regression: its square root, in the units of the target.
  [[nodiscard]] double in_units(double loss) const { return likelihood().metric(loss); }

 private:
  [[nodiscard]] const FeatureMap& map() const { return state_.file.features; }
  [[nodiscard]] const Likelihood& likelihood() const { return likelihood_of(map().target.task); }
  [[nodiscard]] double noise_in_units() const {
    return likelihood().has_noise_variance() ? state_.solver->noise() * map().target.scaling.scale : 0;
  }

  static void clear_metrics(Metrics& metrics) {
    constexpr double not_available = std::numeric_limits<double>::quiet_NaN();
    metrics.loss = metrics.rmse = metrics.mae = metrics.r2 = metrics.logloss = metrics.auc = metrics.accuracy =
        not_available;
  }

  /// Sets the progressive metrics to NaN and warns.
  void remove_progressive_metrics() {
    clear_metrics(summary.progressive);
    clear_metrics(summary.metrics);
    if (is_part_of_classes) return;
    warn(
        "the row order predicts the targets (for example, the rows are sorted by the target): losses of rows predicted "
        "before they were learned do not estimate the loss on other rows and are left out; shuffle the rows, or "
        "measure the loss on a validation file (`validation_path`) or with evaluate");
  }

  void warn_about_targets(const ProgressReporter& progress) {
    const bool is_constant = progress.all().is_target_constant();
    if (has_constant_first_block_ && !is_constant && !can_reread(options_.data))
      warn(fmt::format(
          "the targets of the first {} rows are all equal, and the input cannot be read twice to find other values; {} "
          "(set `task`, or shuffle the rows)",
          first_rows_,
          likelihood_of(summary.task).is_classification()
              ? "the value was interpreted as one of two classes"
              : "the scale of the target could not be estimated from them"));
    if (progress.all().weight() == 0)
      warn("all rows have weight 0, so nothing was learned; set positive weights");
    else if (is_constant)
      warn(likelihood().is_classification()
               ? "all rows with a positive weight belong to one class, so the model cannot separate the classes"
               : "the target is the same in all rows, so the model is a constant");
  }

  void warn_about_features() {
    constexpr bool is_single = sizeof(Scalar) == sizeof(float);
    if (const auto* stream = state_.solver->stream(); stream != nullptr && stream->omitted_features() > 0)
      warn(fmt::format(
          "{} features were left out because their values are too large or too small for {} precision; rescale "
          "them{}",
          stream->omitted_features(), is_single ? "single" : "double",
          is_single ? ", or set `precision` to double" : ""));
    if (map().is_bilinear() &&
        (map().seen_count(FeatureMap::Side::left) == 0 || map().seen_count(FeatureMap::Side::right) == 0))
      warn(
          "no feature of one of the two sides occurs in the rows, so the model has no interactions; check the columns "
          "given by `right`");
  }

  const TrainOptions& options_;
  const TrainState<Scalar>& state_;
  Index first_rows_ = 0;                   ///< number of rows in the first block
  bool has_constant_first_block_ = false;  ///< all targets of the first block are equal
};

}  // namespace dyad
