#include <dyad/train.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/error.h>

#include "base/memory_limit.h"
#include "base/output_file.h"
#include "base/peak_memory.h"
#include "base/private_file.h"
#include "base/thread_pool.h"
#include "data/select_rows.h"
#include "encoding/clip_outliers.h"
#include "encoding/sources/row_reader.h"
#include "training/cached_training.h"
#include "training/class_task.h"
#include "training/rank_selection.h"
#include "training/train_classes.h"

namespace dyad {
namespace {

/// Peak memory of training in copies of the model, measured while a checkpoint is written.
constexpr double model_copies = 12;
/// Additional copies of the model per thread, also measured while a checkpoint is written.
constexpr double model_copies_per_thread = 2;
/// Numbers per feature in a copy of the model in addition to its `rank` factors. Sensitivity: docs/constants.md.
constexpr Index numbers_beside_factors = 5;
/// Largest share of the usable memory that a model may need. The rest is for rows and the program. Sensitivity:
/// docs/constants.md.
constexpr double max_memory_share = 0.8;

/// Throws if the model would need more memory than the process may use.
void require_memory(Index dim, Index rank, int threads, std::size_t scalar_bytes) {
  const double copies = model_copies + model_copies_per_thread * threads;
  const double needed = static_cast<double>(dim) * static_cast<double>(rank + numbers_beside_factors) * copies *
                        static_cast<double>(scalar_bytes);
  const double available = usable_memory_bytes();
  if (needed > max_memory_share * available)
    throw std::runtime_error(fmt::format(
        "a model of {} features and rank {} needs about {:.1f} GB, which is too much for the {:.1f} GB that this "
        "process may use; reduce the number of features with `hash_bits`, or lower `rank`",
        dim, rank, needed / 1e9, available / 1e9));
}

/// A training run: one pass over the rows with checkpoints, multi-pass training on cached rows, and validation. Does
/// not own the options, the hooks and the output. Not thread-safe; uses its own thread pool.
template <typename Scalar>
class Training {
 public:
  Training(const TrainOptions& options, const TrainHooks& hooks, const ClassTask* task, ModelFile file,
           const TrainSettings& settings, LockedFile& output)
      : options_(options),
        hooks_(hooks),
        task_(task),
        pool_(options.threads),
        state_{std::move(file), settings},
        output_(options, state_, constant_, output),
        validation_(options, hooks.interrupted) {
    report_.is_part_of_classes = task != nullptr;
    if (!state_.file.warning.empty()) report_.warn(state_.file.warning);
    if (settings.rows == 0) return;
    if (state_.file.sampled) {
      state_.file.sampled.reset();
      report_.warn(
          "the model is an average of samples; training continues with one pass of the solver kalman, from its means "
          "and approximate variances");
    }
    state_.restore(options, model_name(options), pool_, hooks.interrupted, parts_.fit_progress());
    dim_ = map().dim();
    report_.summary.task = target().task;
    target().is_task_inferred = !options.columns.task;
  }

  /// Reads all rows, trains and saves the model.
  TrainSummary run() {
    RowReader<Scalar> reader(map(), {.data = options_.data,
                                     .columns = options_.columns,
                                     .min_feature_count = state_.settings.rank,
                                     .checkpoint_interval = options_.checkpoint_every,
                                     .rows_before = state_.settings.rows,
                                     .interrupted = hooks_.interrupted,
                                     .threads = options_.threads});
    RowBlock<Scalar> block;
    for (Index first_row = 0; true;) {
      const auto next = reader.next(block);
      if (next == RowReader<Scalar>::Next::interrupted) report_.summary.outcome = Outcome::interrupted;
      if (next != RowReader<Scalar>::Next::block) break;
      const Index count = block.count();
      if (task_ != nullptr && task_->uses_row)
        keep_rows(block, [&](Index i) { return task_->uses_row(first_row + i); });
      first_row += count;
      if (block.count() == 0) continue;
      learn(block);
      if (block.ends_checkpoint_interval) {
        output_.save();
        ++report_.summary.checkpoints;
      }
    }
    reader.stop();
    finish();
    return std::move(report_.summary);
  }

 private:
  [[nodiscard]] FeatureMap& map() { return state_.file.features; }
  [[nodiscard]] Target& target() { return map().target; }
  [[nodiscard]] bool was_interrupted() const { return report_.summary.outcome == Outcome::interrupted; }
  [[nodiscard]] double elapsed_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] double rows_per_second() const { return static_cast<double>(run_rows_) / elapsed_seconds(); }

  /// Predicts the rows of a block, then updates the solver, the row cache and the progress with them.
  void learn(RowBlock<Scalar>& block) {
    if (block.dim > dim_) {
      require_memory(block.dim, state_.settings.rank, pool_.count(), sizeof(Scalar));
      dim_ = block.dim;
    }
    // Copies, because clip_outliers() changes the targets and weights of the block.
    const std::vector<Scalar> targets = block.targets;
    const std::vector<Scalar> weights = block.weights;
    if (state_.solver && target().task != report_.summary.task) restart_as_regression();
    if (!state_.solver) state_.median_squared_norm = median_squared_row_norm(block);
    outliers_ += clip_outliers(block, target().task, state_.median_squared_norm, target().clip_limit);
    if (!progress_) initialize(block);
    state_.solver->grow(block.dim, block.left_dim);
    state_.solver->set_feature_groups(block.new_feature_groups);
    remove_violated_range(targets);
    // Predictions are limited to a range around the observed targets, except for measurements.
    if (likelihood_of(target().task).has_identity_link() && !map().is_measurement())
      for (const Scalar y : block.targets) target().update_bounds(target().unscale(static_cast<double>(y)));
    predictions_.resize(static_cast<std::size_t>(block.count()));
    state_.solver->learn(block.view(), predictions_);
    if (multi_pass_) multi_pass_->cache_rows(block);
    if (guard_) guard_->add(block.view(), predictions_, likelihood_of(target().task));
    run_rows_ += block.count();
    const double rate = rows_per_second();
    progress_->set_predicted(state_.solver->predicts_rows());
    for (std::size_t i = 0; i < predictions_.size(); ++i)
      progress_->add(target().observed(static_cast<double>(targets[i])), target().predicted(predictions_[i]),
                     weights.empty() ? 1 : static_cast<double>(weights[i]), rate);
    constant_.add(targets, predictions_, weights);
    state_.settings.rows += block.count();
    progress_->report_status(rate);
  }

  /// Replaces the solver when a second target value shows that the task is regression. All targets so far were equal
  /// and interpreted as one class, so the old solver has learned a constant only.
  void restart_as_regression() {
    report_.warn(fmt::format(
        "the targets of the first {} rows are all equal and were interpreted as one class; training restarted as "
        "regression at the first different number, without these rows (to use them, set `task` to regression or "
        "shuffle the rows)",
        state_.settings.rows));
    state_.solver.reset();
    multi_pass_.reset();  // its rows have targets of the class encoding
    guard_.reset();
    progress_.reset();
  }

  /// Creates the progress reporter and, unless it was restored from a model file, the solver. They depend on the
  /// columns and the task, which the first block determines. Calls TrainHooks::start.
  void initialize(const RowBlock<Scalar>& block) {
    progress_.emplace(target().task, hooks_);
    report_.summary.task = target().task;
    if (run_rows_ == 0) report_.add_first_block(block);
    if (!state_.solver) make_solver(block);
    if (!hooks_.start) return;
    const std::string plan = multi_pass_ ? multi_pass_->plan() : std::string();
    hooks_.start(report_.start(block.count(), plan.empty() ? plan : "; " + plan));
  }

  void make_solver(const RowBlock<Scalar>& block) {
    TrainSettings& settings = state_.settings;
    if (selects_anova()) {
      settings.solver = Solver::anova;
      settings.rank = 0;
      settings.diagonal = Diagonal::tied;
      state_.solver = parts_.make_anova(parts_.fit_progress());
      for (std::size_t c = 0; c < map().columns().size(); ++c)
        if (map().columns()[c].role == Column::Role::numeric)
          map().set_clipping(c, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max());
      if (!options_.resume) validation_.read(map());
      return;
    }
    const Index max_rank = block.left_dim > 0 ? std::min(block.left_dim, block.dim - block.left_dim) : block.dim;
    if (settings.rank > max_rank) {
      if (options_.rank)
        report_.warn(fmt::format("rank {} exceeds the number of features; rank {} is used", settings.rank, max_rank));
      settings.rank = max_rank;
    }
    if (!settings.diagonal) settings.diagonal = default_diagonal(map(), block);
    settings.uses_moments = can_use_moments(block, target().task);
    if (!options_.resume && !multi_pass_) multi_pass_.emplace(options_, settings);
    selects_rank_ = !options_.resume && !options_.rank && !(multi_pass_ && multi_pass_->follows()) &&
                    can_select_rank(settings, map(), block);
    if (selects_rank_) {
      StreamOptions stream = stream_options(options_, settings, map());
      stream.feature_groups = block.new_feature_groups;
      settings.rank = select_rank(std::move(stream), block.view(), target(), pool_);
    }
    require_memory(block.dim, settings.rank, pool_.count(), sizeof(Scalar));
    state_.solver = make_train_solver<Scalar>(options_, settings, map(), pool_, &block, hooks_.interrupted);
    if (options_.resume) return;
    if (const auto* stream = state_.solver->stream(); stream != nullptr && stream->options().learns_prior &&
                                                      !map().is_bilinear() && settings.half_life == 0 &&
                                                      options_.checkpoint_every == 0)
      guard_.emplace(settings.seed);
    validation_.read(map());
  }

  /// Whether the solver is anova: on request, or if the options and the columns allow it. With many levels, held-out
  /// rows decide later (compare_anova()). Throws std::invalid_argument if it was requested and the columns do not allow
  /// it.
  [[nodiscard]] bool selects_anova() {
    const bool is_requested = state_.settings.solver == Solver::anova;
    if (!is_requested && (state_.settings.solver != Solver::automatic || !allows_anova(options_))) return false;
    const std::string obstacle = anova_obstacle(map(), options_.memory);
    if (is_requested && !obstacle.empty())
      throw std::invalid_argument("the solver anova cannot fit these rows: " + obstacle + "; leave `solver` out");
    compares_anova_ = !is_requested && obstacle.empty() && has_many_levels(map());
    return obstacle.empty() && !compares_anova_;
  }

  /// Removes a target range that was estimated from the first rows if later targets lie outside of it.
  void remove_violated_range(const std::vector<Scalar>& targets) {
    const bool has_low = target().has_low();
    const bool has_high = target().has_high();
    if (!likelihood_of(target().task).has_identity_link() || target().is_range_given || !(has_low || has_high)) return;
    const auto low = static_cast<Scalar>(has_low ? target().scaling.apply(target().low) : 0);
    const auto high = static_cast<Scalar>(has_high ? target().scaling.apply(target().high) : 0);
    if (std::none_of(targets.begin(), targets.end(),
                     [&](Scalar y) { return (has_low && y < low) || (has_high && y > high); }))
      return;
    target().low = Target().low;
    target().high = Target().high;
    state_.solver->remove_target_range();
  }

  void finish() {
    TrainSummary& summary = report_.summary;
    summary.rows = run_rows_;
    summary.all_rows = state_.settings.rows;
    summary.row_reads = summary.rows + (state_.solver ? state_.solver->extra_row_reads() : 0);
    if (!progress_ && !was_interrupted())
      throw DataError(options_.data.name(), 0, 0,
                      "the input contains no rows; expected at least one row to learn from");
    if (progress_) {
      progress_->finish(rows_per_second());
      state_.solver->finish_pass();
      if (state_.solver->was_interrupted()) {
        summary.has_read_all_rows = !was_interrupted();
        summary.outcome = Outcome::interrupted;
      }
      output_.save();
      report_.add_first_pass(*progress_, outliers_);
      if (!was_interrupted()) train_on_cache();
      report_.add_constant(constant_, progress_->all().is_target_constant());
      if (options_.model_path.empty()) summary.model_bytes = output_.updated_file().to_bytes();
    }
    if (map().index_groups && !options_.resume && map().index_groups->feature_count() > map().seen_count())
      report_.warn(fmt::format(
          "{} has {} lines, but the rows have no index above that of line {}; if this is not expected, check that line "
          "1 is the group of the index {} (`index_base`)",
          options_.columns.groups_path, map().index_groups->feature_count(), map().seen_count(), map().index_base));
    summary.features = map().seen_count();
    summary.rank = state_.settings.rank;
    if (!options_.validation_path.empty() && progress_ && !was_interrupted()) {
      (void)output_.updated_file();
      summary.validation = validation_.measure(std::move(state_.file), pool_);
      if (!summary.validation) summary.outcome = Outcome::interrupted;
    }
    summary.seconds = elapsed_seconds();
    summary.peak_rss_bytes = peak_rss_bytes();
  }

  /// Trains on the cached rows. The model of the first pass is already saved.
  void train_on_cache() {
    report_.summary.has_read_all_rows = true;
    if (!multi_pass_) return;
    const bool has_signal = !progress_->all().is_target_constant() && progress_->all().weight() > 0;
    CachedTraining<Scalar>(parts_, *multi_pass_,
                           {.has_signal = has_signal, .selects_rank = selects_rank_, .compares_anova = compares_anova_})
        .run(guard_ ? &*guard_ : nullptr);
  }

  const TrainOptions& options_;
  const TrainHooks& hooks_;
  const ClassTask* task_;  ///< nullptr: regression or two classes
  ThreadPool pool_;
  TrainState<Scalar> state_;  ///< its solver uses the pool
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<MultiPassTraining<Scalar>> multi_pass_;  ///< null before the first block and in resumed runs
  /// Null in resumed runs, with checkpoints or forgetting, for bilinear models, and for other solvers than kalman.
  std::optional<OrderGuard<Scalar>> guard_;
  ConstantProbability<Scalar> constant_{state_, multi_pass_};
  ModelOutput<Scalar> output_;
  ValidationRows<Scalar> validation_;
  TrainReport<Scalar> report_{options_, state_};
  TrainingParts<Scalar> parts_{
      options_, hooks_, pool_, state_, constant_, output_, validation_, report_, [this] { return elapsed_seconds(); }};
  std::optional<ProgressReporter> progress_;
  bool compares_anova_ = false;  ///< the solver anova is a candidate for the cached rows
  bool selects_rank_ = false;    ///< the rank is that of select_rank()
  std::vector<double> predictions_;
  Index dim_ = 0;       ///< number of features that passed require_memory()
  Index run_rows_ = 0;  ///< rows read in this run
  Index outliers_ = 0;  ///< rows that were not learned because of their norm
};

}  // namespace

TrainSummary train_model(const TrainOptions& options, const TrainHooks& hooks, const ClassTask* task,
                         LockedFile& output) {
  ModelFile file;
  if (options.resume)
    file = options.model_path.empty() ? ModelFile::from_bytes(options.model_bytes, model_name(options))
                                      : ModelFile::load(options.model_path);
  const TrainSettings settings =
      options.resume ? TrainSettings::resume(options, file) : TrainSettings::make(options, file);
  if (task != nullptr) file.features.target.set_classes(task->labels, task->positive);
  // A file that cannot be written is reported before training.
  if (!options.model_path.empty()) const OutputFile writable(options.model_path);
  if (settings.precision == Precision::single_precision)
    return Training<float>(options, hooks, task, std::move(file), settings, output).run();
  return Training<double>(options, hooks, task, std::move(file), settings, output).run();
}

TrainSummary train(const TrainOptions& options, const TrainHooks& hooks) {
  options.validate();
  LockedFile output(options.model_path);
  if (is_several_classes(options)) return train_classes(options, hooks, output);
  try {
    return train_model(options, hooks, nullptr, output);
  } catch (const ThirdClassError&) {
    if (options.resume || !can_reread(options.data)) throw;
  }
  return train_classes(options, hooks, output);
}

}  // namespace dyad
