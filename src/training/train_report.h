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
#include "training/progress_lines.h"

namespace dyad {

/// Fills the summary of a training run: metrics, the origin of the model, and warnings with their remedies. Does not
/// own its arguments; the caller keeps them alive.
template <typename Scalar>
class TrainReport {
 public:
  TrainReport(const TrainOptions& options, const TrainState<Scalar>& state) : options_(options), state_(state) {}

  TrainSummary summary;

  void warn(std::string text) { summary.warnings.push_back(std::move(text)); }

  /// The first block of the run, which has fixed the columns.
  void add_first_block(const RowBlock<Scalar>& block) {
    first_rows_ = block.count();
    began_with_constant_target_ =
        std::adjacent_find(block.targets.begin(), block.targets.end(), std::not_equal_to<>()) == block.targets.end();
  }

  /// The description for TrainHooks::start. `plan` continues that of the solver.
  [[nodiscard]] TrainStart start(Index first_rows, const std::string& plan) const {
    const Target& target = map().target;
    TrainStart start;
    start.task = target.task;
    start.kind = map().kind;
    start.rank = state_.settings.rank;
    start.diagonal = *state_.settings.diagonal;
    start.features = map().seen();
    for (const Column& column : map().columns())
      (column.role == Column::Role::number ? start.numbers : start.categories).push_back(column.name);
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

  /// The end of the first pass. `outliers`: number of rows that were left out because of their length.
  void add_first_pass(const ProgressLines& lines, Index outliers) {
    summary.progressive = lines.all().metrics();
    summary.metrics = lines.recent();
    if (lines.are_about_order()) leave_out_progressive_metrics();
    warn_about_targets(lines);
    if (outliers > 0)
      warn(fmt::format("{} rows were a thousand times as long as usual; they were predicted, but not learned from",
                       outliers));
    warn_about_features();
    summary.solver = state_.settings.solver == Solver::moment ? Solver::moment : Solver::kalman;
    summary.origin = state_.solver->origin();
    summary.noise = noise_in_units();
  }

  /// The end of multi-pass training. If its model is used, the solver has taken it over.
  void add_multi_pass(const RefineResult<Scalar>& result, const MultiPassTraining<Scalar>& multi_pass) {
    if (result.takes_too_long)
      warn(
          "these rows are too many to read them again in reasonable time, so the model comes from one pass; ask for it "
          "with --solver newton or --passes, or raise --memory for variational sweeps");
    if (result.held_out_rows > 0)
      summary.improvement = Improvement{in_units(result.one_pass), in_units(result.refined), result.held_out_rows};
    if (!result.filter) {
      if (options_.asks_to_read_again() && multi_pass.why_not().empty())
        warn("multi-pass training needs at least 10 rows and a finite fit, so the model comes from one pass");
      return;
    }
    if (options_.passes && result.levels + 1 < *options_.passes)
      warn(fmt::format("training ended after {} passes, at the weakest regularization", result.levels + 1));
    if (summary.improvement && !(result.refined < result.one_pass))
      warn("one pass has a smaller loss on held-out rows than this solver; without --solver the better one is used");
    summary.passes = 1 + result.levels;
    summary.solver = multi_pass.solver();
    summary.origin = fmt::format("from all rows, read again: {}", result.level);
    summary.noise = noise_in_units();
  }

  /// Whether the model is a constant, and why.
  void add_constant(const ConstantProbability<Scalar>& constant, bool target_is_constant) {
    const bool lacks_evidence = constant.applies();
    summary.is_constant = lacks_evidence || state_.solver->is_constant();
    if (!summary.is_constant || target_is_constant || summary.outcome == Outcome::interrupted) return;
    if (state_.solver->is_constant()) return warn(state_.solver->why_constant());
    warn(
        fmt::format("the model is a constant probability: on rows that it had not seen, the features gain {:.1f} nats "
                    "of log-likelihood over the best constant, and at least {:g} are needed to tell a gain from "
                    "chance; more rows of the rarer class may change that",
                    std::max(0.0, constant.nats()), ClassEvidence::least_nats));
  }

  /// The loss in the units of the target (regression: its root).
  [[nodiscard]] double in_units(double loss) const { return likelihood().figure(loss); }

 private:
  [[nodiscard]] const FeatureMap& map() const { return state_.file.features; }
  [[nodiscard]] const Likelihood& likelihood() const { return likelihood_of(map().target.task); }
  [[nodiscard]] double noise_in_units() const {
    return likelihood().has_noise_variance() ? state_.solver->noise() * map().target.scaling.scale : 0;
  }

  void leave_out_progressive_metrics() {
    for (Metrics* metrics : {&summary.progressive, &summary.metrics}) {
      constexpr double none = std::numeric_limits<double>::quiet_NaN();
      metrics->loss = metrics->rmse = metrics->mae = metrics->r2 = metrics->logloss = metrics->auc = metrics->accuracy =
          none;
    }
    warn(
        "the rows come in an order that predicts their targets, such as sorted by the target: losses of rows predicted "
        "before they were learned do not estimate the loss on other rows and are left out; shuffle the rows, or "
        "measure "
        "with --validation or evaluate");
  }

  void warn_about_targets(const ProgressLines& lines) {
    const bool is_constant = lines.all().target_is_constant();
    if (began_with_constant_target_ && !is_constant && !can_be_read_again(options_.data))
      warn(fmt::format(
          "the targets of the first {} rows are all the same, and what does not lie in files cannot be read twice to "
          "see the others; {} (give --task, or shuffle the rows)",
          first_rows_,
          likelihood_of(summary.task).is_classification() ? "they were taken for one of two classes"
                                                          : "the scale of the target is a guess"));
    if (lines.all().weight() == 0)
      warn("all rows have weight 0, so there was nothing to learn from");
    else if (is_constant)
      warn(likelihood().is_classification()
               ? "all rows that count are of one class, so the model cannot separate the classes"
               : "the target is the same in all rows, so the model is a constant");
  }

  void warn_about_features() {
    constexpr bool is_single = sizeof(Scalar) == sizeof(float);
    if (const auto* stream = state_.solver->stream(); stream != nullptr && stream->left_out_features() > 0)
      warn(fmt::format(
          "{} features were left out, because their values are too large or too small for {} precision; rescale "
          "them{}",
          stream->left_out_features(), is_single ? "single" : "double",
          is_single ? ", or use --precision double" : ""));
    if (map().is_bilinear() &&
        (map().count_of_seen(FeatureMap::Side::left) == 0 || map().count_of_seen(FeatureMap::Side::right) == 0))
      warn("one of the two factors has no column that ever occurred, so there were no pairs to learn; look at --right");
  }

  const TrainOptions& options_;
  const TrainState<Scalar>& state_;
  Index first_rows_ = 0;  ///< of the first block
  bool began_with_constant_target_ = false;
};

}  // namespace dyad
