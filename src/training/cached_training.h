#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/private_file.h"
#include "base/thread_pool.h"
#include "training/anova_comparison.h"
#include "training/model_output.h"
#include "training/order_guard.h"
#include "training/rank_selection.h"
#include "training/state/anova_training.h"
#include "training/train_report.h"
#include "training/validation_rows.h"

namespace dyad {

/// Parts of a training run that the first pass and the training on cached rows share. Does not own them.
template <typename Scalar>
struct TrainingParts {
  const TrainOptions& options;
  const TrainHooks& hooks;
  ThreadPool& pool;
  TrainState<Scalar>& state;
  ConstantProbability<Scalar>& constant;
  ModelOutput<Scalar>& output;
  ValidationRows<Scalar>& validation;
  TrainReport<Scalar>& report;
  std::function<double()> elapsed_seconds;

  [[nodiscard]] FeatureMap& map() const { return state.file.features; }
  [[nodiscard]] Target& target() const { return map().target; }
  [[nodiscard]] bool was_interrupted() const { return hooks.interrupted && hooks.interrupted(); }

  [[nodiscard]] std::unique_ptr<AnovaTraining<Scalar>> make_anova(FitProgress progress) const {
    return std::make_unique<AnovaTraining<Scalar>>(state.settings, map(), options.memory,
                                                   options.data.dataset != nullptr, pool, hooks.interrupted,
                                                   std::move(progress));
  }

  /// Reports the rounds of a fit through TrainHooks::multi_pass.
  [[nodiscard]] FitProgress fit_progress() const {
    if (!hooks.multi_pass) return {};
    return [parts = *this](const std::string& round, double objective, double held_out) {
      const double scale = parts.target().scaling.scale;
      parts.hooks.multi_pass(
          {round, objective, parts.report.in_units(held_out * scale * scale), parts.elapsed_seconds(), false});
    };
  }
};

/// Training on cached rows after the first pass: a remedy for orders of the rows that hurt, further passes of the
/// filter, multi-pass training, and the comparison with the solver anova. Does not own its arguments; the caller keeps
/// them alive. Not thread-safe.
template <typename Scalar>
class CachedTraining {
 public:
  struct Options {
    bool has_signal = false;      ///< the targets differ and have weights
    bool selects_rank = false;    ///< the rank is that of select_rank()
    bool compares_anova = false;  ///< the solver anova is a candidate
  };

  CachedTraining(const TrainingParts<Scalar>& parts, MultiPassTraining<Scalar>& multi_pass, const Options& options)
      : parts_(parts), multi_pass_(multi_pass), options_(options) {}

  /// Replaces the saved model of the first pass where training returns a model. `guard`: of the first pass; null: none.
  void run(OrderGuard<Scalar>* guard) {
    const auto fits_exactly = [&] { return parts_.state.solver->stream()->fits_exactly(); };
    if (options_.has_signal && parts_.state.solver->stream() != nullptr && !fits_exactly()) {
      if (guard != nullptr) remedy_order(*guard);
      if (!has_ended()) make_further_passes();
      if (has_ended()) return;
    }
    if (multi_pass_.follows() && options_.has_signal &&
        (!fits_exactly() || multi_pass_.treats_weights_as_counts(parts_.map()))) {
      try {
        use_result(multi_pass_.train_multi_pass(*parts_.state.solver->stream(), parts_.map(), parts_.validation,
                                                multi_pass_options(), parts_.pool));
      } catch (const PrivateFileError& error) {
        parts_.report.warn(fmt::format("{}; the model comes from one pass", error.what()));
      }
    }
    if (!multi_pass_.skip_reason().empty()) parts_.report.warn(multi_pass_.skip_reason());
    const auto* stream = parts_.state.solver->stream();
    if (stream != nullptr && options_.has_signal && !has_ended())
      parts_.report.add_diagnosis(multi_pass_.diagnose(stream->filter(), parts_.hooks.interrupted, parts_.pool));
  }

 private:
  [[nodiscard]] bool has_ended() const { return parts_.report.summary.outcome == Outcome::interrupted; }

  [[nodiscard]] FurtherPassesOptions<Scalar> further_passes_options() {
    FurtherPassesOptions<Scalar> options;
    options.max_passes = parts_.options.passes.value_or(1);
    options.seed = parts_.state.settings.seed;
    options.loss = [this](double y, double f) { return parts_.target().score(y, f); };
    options.interrupted = parts_.hooks.interrupted;
    if (options_.selects_rank)
      options.select_rank = [this](StreamOptions stream, const Rows<Scalar>& rows) {
        stream.kalman.shape.rank = TrainSettings().rank;
        return select_rank(std::move(stream), rows, parts_.target(), parts_.pool);
      };
    if (parts_.hooks.multi_pass)
      options.progress = [this](Index pass, double held_out) {
        parts_.hooks.multi_pass({fmt::format("pass {}", pass), std::numeric_limits<double>::quiet_NaN(),
                                 parts_.report.in_units(held_out), parts_.elapsed_seconds(), false});
      };
    return options;
  }

  /// Replaces the filter of the first pass by one that learned rows in random order if the order of the rows hurts.
  void remedy_order(OrderGuard<Scalar>& guard) {
    const StreamLearner<Scalar>& stream = *parts_.state.solver->stream();
    if (multi_pass_.treats_weights_as_counts(parts_.map())) return;  // the first pass is not used
    const std::optional<Rows<Scalar>> cached = multi_pass_.cached_rows(stream.filter().options().shape);
    auto remedy = guard.remedy(stream, cached ? &*cached : nullptr, !multi_pass_.follows(), further_passes_options(),
                               parts_.pool);
    parts_.report.summary.row_reads += remedy.row_reads;
    if (parts_.was_interrupted()) {
      parts_.report.summary.outcome = Outcome::interrupted;
      return;
    }
    if (remedy.filter) {
      parts_.state.settings.rank = remedy.filter->options().shape.rank;
      parts_.state.solver->promote(std::move(*remedy.filter), StreamLearner<Scalar>::Origin::shuffled);
      parts_.output.save();
    }
    parts_.report.add_order_remedy(remedy.kind);
  }

  /// Further passes of the filter, if requested for the solver kalman.
  void make_further_passes() {
    if (parts_.state.settings.solver != Solver::kalman || parts_.options.passes.value_or(1) < 2) return;
    const KalmanFilter<Scalar>& filter = parts_.state.solver->stream()->filter();
    const std::optional<Rows<Scalar>> cached = multi_pass_.cached_rows(filter.options().shape);
    if (!cached) return;
    if (!filter.learns_prior())
      return parts_.report.warn(
          "further passes of the solver kalman need the start with a hierarchical prior, which another "
          "start has replaced; use the solver newton for more passes");
    FurtherPassesResult<Scalar> result = train_further_passes(filter, *cached, further_passes_options());
    if (result.interrupted) {
      parts_.report.summary.outcome = Outcome::interrupted;
      return;
    }
    if (result.filter) {
      parts_.state.solver->promote(std::move(*result.filter), StreamLearner<Scalar>::Origin::multi_pass);
      parts_.output.save();
    }
    parts_.report.add_further_passes(result);
  }

  [[nodiscard]] MultiPassOptions multi_pass_options() const {
    MultiPassOptions options;
    options.interrupted = parts_.hooks.interrupted;
    if (parts_.hooks.multi_pass)
      options.progress = [this](const MultiPassStep& step) {
        parts_.hooks.multi_pass({step.level, step.objective, parts_.report.in_units(step.held_out),
                                 parts_.elapsed_seconds(), step.is_refit});
      };
    return options;
  }

  /// Replaces the model of the first pass if multi-pass training returned a filter, and saves it.
  void use_result(MultiPassResult<Scalar> result) {
    parts_.report.summary.row_reads += result.row_reads;
    if (result.interrupted) {
      parts_.report.summary.outcome = Outcome::interrupted;
      if (!result.sampled || !result.filter) return;
    }
    parts_.constant.set_held_out_gain(result.gain_over_constant);
    if (result.filter) {
      parts_.state.settings.rank = result.filter->options().shape.rank;
      parts_.state.solver->promote(std::move(*result.filter), StreamLearner<Scalar>::Origin::multi_pass);
      parts_.state.settings.uses_moments = parts_.state.solver->stream()->options().moment.has_value();
      parts_.state.sampled = result.sampled;
    }
    if (result.filter || parts_.constant.has_held_out()) parts_.output.save();
    parts_.report.add_multi_pass(result, multi_pass_);
    if (options_.compares_anova && !result.interrupted) compare_anova(result);
  }

  /// Replaces the low-rank model by an ANOVA model if that has the smaller loss on the same held-out rows.
  void compare_anova(const MultiPassResult<Scalar>& result) {
    const double low_rank_loss = result.levels > 0 ? result.multi_pass : result.one_pass;
    const auto rows = multi_pass_.cached_rows(parts_.state.solver->stream()->filter().options().shape);
    if (!rows || result.folds == 0) return;
    const double loss = held_out_anova_loss<Scalar>(*rows, result.fold_of, result.folds, parts_.map(),
                                                    [this] { return parts_.make_anova({}); });
    if (!(loss < low_rank_loss) || parts_.was_interrupted()) return;
    auto anova = parts_.make_anova(parts_.fit_progress());
    fit_anova_rows(*anova, *rows);
    if (anova->was_interrupted()) return;
    parts_.state.settings.solver = Solver::anova;
    parts_.state.settings.rank = 0;
    parts_.state.settings.diagonal = Diagonal::tied;
    parts_.state.solver = std::move(anova);
    parts_.state.sampled.reset();
    parts_.output.save();
    parts_.report.replace_by_anova(loss);
  }

  const TrainingParts<Scalar>& parts_;
  MultiPassTraining<Scalar>& multi_pass_;
  const Options options_;
};

}  // namespace dyad
