#include <dyad/train.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/data_error.h>

#include "base/memory_limit.h"
#include "base/output_file.h"
#include "base/peak_memory.h"
#include "base/private_file.h"
#include "base/thread_pool.h"
#include "encoding/clip_outliers.h"
#include "encoding/sources/row_reader.h"
#include "training/model_output.h"
#include "training/train_report.h"

namespace dyad {
namespace {

/// Throws if the model would need more memory than the process may use.
void require_memory(Index dim, Index rank, int threads, std::size_t scalar_bytes) {
  const double copies = 12.0 + 2 * threads;  // maximum measured, while a checkpoint is written
  const double needed =
      static_cast<double>(dim) * static_cast<double>(rank + 5) * copies * static_cast<double>(scalar_bytes);
  const double there = usable_memory_bytes();
  if (needed > 0.8 * there)
    throw std::runtime_error(fmt::format(
        "a model of {} features and rank {} needs about {:.1f} GB, more than the {:.1f} GB that this process may use; "
        "fold the features together with --hash-bits, or lower --rank",
        dim, rank, needed / 1e9, there / 1e9));
}

/// A training run: one pass over the rows, checkpoints, multi-pass training on cached rows, and validation. Does not
/// own the options, the hooks and the output.
template <typename Scalar>
class Training {
 public:
  Training(const TrainOptions& options, const TrainHooks& hooks, ModelFile file, const TrainSettings& settings,
           LockedFile& output)
      : options_(options),
        hooks_(hooks),
        pool_(options.threads),
        state_{std::move(file), settings},
        output_(options, state_, constant_, output),
        validation_(options, hooks.interrupted) {
    if (!state_.file.warning.empty()) report_.warn(state_.file.warning);
    if (settings.rows == 0) return;
    state_.restore(options, model_name(options), pool_, hooks.interrupted);
    dim_ = map().dim();
    report_.summary.task = target().task;
    target().task_is_open = !options.columns.task;
  }

  TrainSummary run() {
    RowReader<Scalar> reader(map(), {.data = options_.data,
                                     .columns = options_.columns,
                                     .room = state_.settings.rank,
                                     .stretch = options_.checkpoint_every,
                                     .rows_before = state_.settings.rows,
                                     .interrupted = hooks_.interrupted});
    RowBlock<Scalar> block;
    while (true) {
      const auto next = reader.next(block);
      if (next == RowReader<Scalar>::Next::interrupted) report_.summary.outcome = Outcome::interrupted;
      if (next != RowReader<Scalar>::Next::block) break;
      learn(block);
      if (block.ends_stretch) {
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
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] double rows_per_second() const { return static_cast<double>(rows_of_this_run_) / elapsed(); }

  void learn(RowBlock<Scalar>& block) {
    if (block.dim > dim_) {
      require_memory(block.dim, state_.settings.rank, pool_.count(), sizeof(Scalar));
      dim_ = block.dim;
    }
    const std::vector<Scalar> targets = block.targets;
    const std::vector<Scalar> weights = block.weights;
    if (state_.solver && target().task != report_.summary.task) restart_as_regression();
    if (!state_.solver) state_.usual_length = median_length(block);
    outliers_ += clip_outliers(block, target().task, state_.usual_length, target().reach);
    if (!lines_) begin(block);
    state_.solver->grow(block.dim, block.left_dim);
    check_range(targets);
    // Targets of measurements are not clipped.
    if (likelihood_of(target().task).has_identity_link() && !map().is_measurement())
      for (const Scalar y : block.targets) target().see(target().in_units(static_cast<double>(y)));
    predictions_.resize(static_cast<std::size_t>(block.count()));
    state_.solver->learn(block.view(), predictions_);
    if (multi_pass_) multi_pass_->keep(block);
    rows_of_this_run_ += block.count();
    const double rate = rows_per_second();
    for (std::size_t i = 0; i < predictions_.size(); ++i)
      lines_->add(target().observed(static_cast<double>(targets[i])), target().predicted(predictions_[i]),
                  weights.empty() ? 1 : static_cast<double>(weights[i]), rate);
    constant_.add(targets, predictions_, weights);
    state_.settings.rows += block.count();
    lines_->pulse(rate);
  }

  /// All targets before were equal, so that the solver has learned their value only.
  void restart_as_regression() {
    report_.warn(fmt::format(
        "the targets of the first {} rows are all the same, and were taken for one class until another number came; "
        "the pass began again there, as regression (to count them, say --task regression, or shuffle the rows)",
        state_.settings.rows));
    state_.solver.reset();
    lines_.reset();
  }

  /// The first block has fixed the columns, which determine everything else.
  void begin(const RowBlock<Scalar>& block) {
    lines_.emplace(target().task, hooks_);
    report_.summary.task = target().task;
    if (rows_of_this_run_ == 0) report_.add_first_block(block);
    if (!state_.solver) make_solver(block);
    if (!hooks_.start) return;
    const bool is_keeping = multi_pass_ && multi_pass_->is_keeping();
    hooks_.start(report_.start(block.count(), is_keeping ? "; " + multi_pass_->plan() : std::string()));
  }

  void make_solver(const RowBlock<Scalar>& block) {
    TrainSettings& settings = state_.settings;
    const Index most_rank = block.left_dim > 0 ? std::min(block.left_dim, block.dim - block.left_dim) : block.dim;
    if (settings.rank > most_rank) {
      if (options_.rank)
        report_.warn(fmt::format("the rank is {}, the number of features, instead of {}", most_rank, settings.rank));
      settings.rank = most_rank;
    }
    if (!settings.diagonal) settings.diagonal = usual_diagonal(map(), block);
    require_memory(block.dim, settings.rank, pool_.count(), sizeof(Scalar));
    settings.watches_moments = moments_carry_signal(block, target().task);
    state_.solver = make_train_solver<Scalar>(options_, settings, map(), pool_, &block, hooks_.interrupted);
    if (options_.resume) return;
    if (!multi_pass_) multi_pass_.emplace(options_, settings);
    validation_.read(map());
  }

  /// Removes a range that was found in the first rows, and that later targets leave.
  void check_range(const std::vector<Scalar>& targets) {
    const bool has_low = target().has_low();
    const bool has_high = target().has_high();
    if (!likelihood_of(target().task).has_identity_link() || target().range_is_given || !(has_low || has_high)) return;
    const auto low = static_cast<Scalar>(has_low ? target().scaling.apply(target().low) : 0);
    const auto high = static_cast<Scalar>(has_high ? target().scaling.apply(target().high) : 0);
    if (std::none_of(targets.begin(), targets.end(),
                     [&](Scalar y) { return (has_low && y < low) || (has_high && y > high); }))
      return;
    target().low = Target().low;
    target().high = Target().high;
    state_.solver->give_up_range();
  }

  void finish() {
    TrainSummary& summary = report_.summary;
    summary.rows = rows_of_this_run_;
    summary.all_rows = state_.settings.rows;
    summary.row_reads = summary.rows + (state_.solver ? state_.solver->extra_row_reads() : 0);
    if (!lines_ && !was_interrupted())
      throw DataError(options_.data.name(), 0, 0, "there is no row in it, expected rows to learn from");
    if (lines_) {
      lines_->finish(rows_per_second());
      output_.save();
      report_.add_first_pass(*lines_, outliers_);
      if (!was_interrupted()) train_again();
      report_.add_constant(constant_, lines_->all().target_is_constant());
      if (options_.model_path.empty()) summary.model_bytes = output_.updated_file().to_bytes();
    }
    summary.features = map().seen();
    if (!options_.validation_path.empty() && lines_ && !was_interrupted()) {
      (void)output_.updated_file();
      summary.validation = validation_.measure(std::move(state_.file), pool_);
      if (!summary.validation) summary.outcome = Outcome::interrupted;
    }
    summary.seconds = elapsed();
    summary.peak_rss_bytes = peak_rss_bytes();
  }

  /// Trains on the cached rows. The model of the first pass has been saved, and is kept if it is the better one.
  void train_again() {
    report_.summary.has_learned_all = true;
    if (!multi_pass_) return;
    const bool can_learn = !lines_->all().target_is_constant() && lines_->all().weight() > 0;
    // Rows that are fitted exactly leave nothing to improve, unless they are copies of a few.
    if (multi_pass_->is_keeping() && can_learn &&
        (!state_.solver->stream()->fits_exactly() || multi_pass_->counts_exactly(map()))) {
      try {
        take(multi_pass_->refine(*state_.solver->stream(), map(), validation_, refine_options(), pool_));
      } catch (const PrivateFileError& error) {
        report_.warn(fmt::format("{}; the model comes from one pass", error.what()));
      }
    }
    if (!multi_pass_->why_not().empty()) report_.warn(multi_pass_->why_not());
  }

  [[nodiscard]] RefineOptions refine_options() const {
    RefineOptions options;
    options.interrupted = hooks_.interrupted;
    if (hooks_.refine)
      options.progress = [this](const RefineStep& step) {
        hooks_.refine({step.level, step.objective, report_.in_units(step.held_out), elapsed(), step.is_refit});
      };
    return options;
  }

  void take(RefineResult<Scalar> result) {
    report_.summary.row_reads += result.row_reads;
    if (result.interrupted) {
      report_.summary.outcome = Outcome::interrupted;
      return;
    }
    constant_.set_held_out_gain(result.gain_over_constant);
    if (result.filter) state_.solver->promote(std::move(*result.filter));
    if (result.filter || constant_.has_held_out()) output_.save();
    report_.add_multi_pass(result, *multi_pass_);
  }

  const TrainOptions& options_;
  const TrainHooks& hooks_;
  ThreadPool pool_;
  TrainState<Scalar> state_;  ///< its solver uses the pool
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<MultiPassTraining<Scalar>> multi_pass_;  ///< of fresh runs
  ConstantProbability<Scalar> constant_{state_, multi_pass_};
  ModelOutput<Scalar> output_;
  ValidationRows<Scalar> validation_;
  TrainReport<Scalar> report_{options_, state_};
  std::optional<ProgressLines> lines_;
  std::vector<double> predictions_;
  Index dim_ = 0;
  Index rows_of_this_run_ = 0;
  Index outliers_ = 0;  ///< rows that were not learned because of their length
};

}  // namespace

TrainSummary train(const TrainOptions& options, const TrainHooks& hooks) {
  options.validate();
  LockedFile output(options.model_path);
  ModelFile file;
  if (options.resume)
    file = options.model_path.empty() ? ModelFile::from_bytes(options.model_bytes, model_name(options))
                                      : ModelFile::load(options.model_path);
  const TrainSettings settings =
      options.resume ? TrainSettings::resumed(options, file) : TrainSettings::fresh(options, file);
  // A file that cannot be written is reported before training.
  if (!options.model_path.empty()) const OutputFile writable(options.model_path);
  if (settings.precision == Precision::single_precision)
    return Training<float>(options, hooks, std::move(file), settings, output).run();
  return Training<double>(options, hooks, std::move(file), settings, output).run();
}

}  // namespace dyad
