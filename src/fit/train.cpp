#include <dyad/train.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/data_error.h>

#include "base/locked_file.h"
#include "base/memory_limit.h"
#include "base/output_file.h"
#include "base/private_file.h"
#include "base/workers.h"
#include "feed/row_reader.h"
#include "fit/peak_memory.h"
#include "fit/prediction.h"
#include "fit/progress_lines.h"
#include "fit/second_look.h"
#include "fit/tame.h"
#include "fit/train_settings.h"
#include "fit/train_solver.h"
#include "model/low_rank.h"
#include "model/model_file.h"
#include "stream/class_evidence.h"

namespace dyad {
namespace {

/// Refuses what would end in swapping or in being killed.
void require_memory(Index dim, Index rank, int threads, std::size_t scalar_bytes) {
  const double copies = 12.0 + 2 * threads;  // measured at their most, while a checkpoint is written
  const double needed =
      static_cast<double>(dim) * static_cast<double>(rank + 5) * copies * static_cast<double>(scalar_bytes);
  const double there = usable_memory_bytes();
  if (needed > 0.8 * there)
    throw std::runtime_error(fmt::format(
        "a model of {} features and rank {} needs about {:.1f} GB, more than the {:.1f} GB that this process may use; "
        "fold the features together with --hash-bits, or lower --rank",
        dim, rank, needed / 1e9, there / 1e9));
}

std::string model_name(const TrainOptions& options) {
  return options.model_path.empty() ? "the model" : options.model_path;
}

template <typename Scalar>
class Training {
 public:
  Training(const TrainOptions& options, const TrainHooks& hooks, ModelFile& file, TrainSettings& settings,
           LockedFile& output)
      : options_(options),
        hooks_(hooks),
        file_(file),
        settings_(settings),
        output_(output),
        threads_(Workers::count_for(options.threads)) {
    if (!file.warning.empty()) summary_.warnings.push_back(file.warning);
    if (settings.rows == 0) return;
    restore();
    summary_.task = file_.features.target.task;
    file_.features.target.task_is_open = !options.columns.task;
  }

  TrainSummary run() {
    RowReader<Scalar> reader(file_.features, {.data = options_.data,
                                              .columns = options_.columns,
                                              .room = settings_.rank,
                                              .stretch = options_.checkpoint_every,
                                              .rows_before = settings_.rows,
                                              .interrupted = hooks_.interrupted});
    RowBlock<Scalar> block;
    while (true) {
      const auto next = reader.next(block);
      if (next == RowReader<Scalar>::Next::interrupted) summary_.outcome = Outcome::interrupted;
      if (next != RowReader<Scalar>::Next::block) break;
      learn(block);
      if (block.ends_stretch) {
        save();
        ++summary_.checkpoints;
      }
    }
    reader.stop();
    finish();
    return summary_;
  }

 private:
  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  [[nodiscard]] double rate() const { return static_cast<double>(rows_of_this_run_) / elapsed(); }

  /// A number has shown that what seemed to be one class is none. All targets before were the same, so that a filter
  /// has learned nothing but their value.
  void restart_with_numbers() {
    summary_.warnings.push_back(
        fmt::format("the targets of the first {} rows are all the same, and were taken for one class until another "
                    "number came; the "
                    "pass began again there, as regression (to count them, say --task regression, or shuffle the rows)",
                    settings_.rows));
    solver_.reset();
    lines_.reset();
  }

  /// The first block has fixed the columns: now everything else can be.
  void begin(const RowBlock<Scalar>& block) {
    const FeatureMap& map = file_.features;
    lines_.emplace(map.target.task, hooks_);
    summary_.task = map.target.task;
    if (rows_of_this_run_ == 0) {
      first_rows_ = block.count();
      began_with_constant_target_ =
          std::adjacent_find(block.targets.begin(), block.targets.end(), std::not_equal_to<>()) == block.targets.end();
    }
    if (!solver_) {
      const Index most_rank = block.left_dim > 0 ? std::min(block.left_dim, block.dim - block.left_dim) : block.dim;
      if (settings_.rank > most_rank) {
        // Said only where somebody asked for more.
        if (options_.rank)
          summary_.warnings.push_back(
              fmt::format("the rank is {}, the number of features, instead of {}", most_rank, settings_.rank));
        settings_.rank = most_rank;
      }
      if (!settings_.diagonal) settings_.diagonal = usual_diagonal(map, block);
      require_memory(block.dim, settings_.rank, threads_, sizeof(Scalar));
      settings_.watches_moments = moments_carry_signal(block, map.target.task);
      solver_ = make_train_solver<Scalar>(options_, settings_, map, &block, hooks_.interrupted);
      if (!second_look_ && !options_.resume) second_look_.emplace(options_, settings_);
      if (second_look_) second_look_->check_validation(file_.features, hooks_.interrupted);
    }
    if (!hooks_.start) return;
    TrainStart start;
    start.task = map.target.task;
    start.kind = map.kind;
    start.rank = settings_.rank;
    start.diagonal = *settings_.diagonal;
    start.features = map.seen();
    for (const Column& column : map.columns())
      (column.role == Column::Role::number ? start.numbers : start.categories).push_back(column.name);
    start.target = map.target.name;
    start.negative = map.target.negative;
    start.positive = map.target.positive;
    start.plan = solver_->plan();
    if (second_look_ && second_look_->is_keeping()) start.plan += "; " + second_look_->plan();
    start.low = map.target.low;
    start.high = map.target.high;
    start.has_low = map.target.has_low();
    start.has_high = map.target.has_high();
    start.first_rows = block.count();
    start.rows_before = settings_.rows;
    hooks_.start(start);
  }

  /// A range that the first rows seemed to have, but that is none.
  void check_range(const std::vector<Scalar>& targets) {
    Target& target = file_.features.target;
    if (!likelihood_of(target.task).has_identity_link() || target.range_is_given ||
        !(target.has_low() || target.has_high()))
      return;
    const auto low = static_cast<Scalar>(target.has_low() ? target.scaling.apply(target.low) : 0);
    const auto high = static_cast<Scalar>(target.has_high() ? target.scaling.apply(target.high) : 0);
    if (std::none_of(targets.begin(), targets.end(),
                     [&](Scalar y) { return (target.has_low() && y < low) || (target.has_high() && y > high); }))
      return;
    target.low = Target().low;
    target.high = Target().high;
    solver_->give_up_range();
  }

  void learn(RowBlock<Scalar>& block) {
    if (block.dim > dim_) {
      require_memory(block.dim, settings_.rank, threads_, sizeof(Scalar));
      dim_ = block.dim;
    }
    const std::vector<Scalar> targets = block.targets;
    const std::vector<Scalar> weights = block.weights;
    if (solver_ && file_.features.target.task != summary_.task) restart_with_numbers();
    if (!solver_) usual_length_ = median_length(block);
    Target& target = file_.features.target;
    wild_rows_ += tame(block, target.task, usual_length_, target.reach);
    if (!lines_) begin(block);
    solver_->grow(block.dim, block.left_dim);
    check_range(targets);
    // Measurements mean what they say, however far out.
    if (likelihood_of(target.task).has_identity_link() && !file_.features.is_measurement())
      for (const Scalar y : block.targets) target.see(target.in_units(static_cast<double>(y)));
    predictions_.resize(static_cast<std::size_t>(block.count()));
    solver_->learn(block.view(), predictions_);
    if (second_look_) second_look_->keep(block);
    rows_of_this_run_ += block.count();
    const double rows_per_second = rate();
    for (std::size_t i = 0; i < predictions_.size(); ++i) {
      const double f = predictions_[i];
      const double weight = weights.empty() ? 1 : static_cast<double>(weights[i]);
      const auto y = static_cast<double>(targets[i]);
      lines_->add(target.observed(y), target.predicted(f), weight, rows_per_second);
      if (!likelihood_of(target.task).is_classification()) continue;
      if (solver_->is_by_constant(i))
        evidence_.add_constant(y > 0, weight);
      else
        evidence_.add(y > 0, target.score(y, f), weight);
    }
    settings_.rows += block.count();
    lines_->pulse(rows_per_second);
  }

  void archive(Archive& archive) {
    solver_->archive(archive);
    archive.number("usual_length", usual_length_);
    if (likelihood_of(file_.features.target.task).is_classification())
      archive.group("evidence", [&] { evidence_.archive(archive); });
  }

  /// Whether the model is the constant probability, because rows that it had not seen do not speak for more.
  [[nodiscard]] bool lacks_evidence() const {
    if (!likelihood_of(file_.features.target.task).is_classification()) return false;
    // The order of rows that count exactly has no effect, so that only held-out rows can speak.
    const bool counts_exactly = second_look_ && second_look_->counts_exactly(file_.features);
    if (counts_exactly && !has_held_out_) return false;
    return (counts_exactly ? evidence_.held_out() : evidence_.nats()) < ClassEvidence::least_nats;
  }

  void make_constant(Model<double>& model) const {
    model.intercept = evidence_.log_odds();
    std::fill(model.weights.begin(), model.weights.end(), 0.0);
    std::fill(model.spectrum.begin(), model.spectrum.end(), 0.0);
    std::fill(model.squares.begin(), model.squares.end(), 0.0);
  }

  /// To its file; where there is none, all that comes before it is done.
  void save() {
    if (options_.model_path.empty()) {
      (void)solver_->model();
      return;
    }
    write_down();
    output_.replace(file_.to_bytes());
    file_.model = Model<double>(0, 0);
    file_.state = {};
  }

  /// What has been learned so far.
  void write_down() {
    const FeatureMap& map = file_.features;
    solver_->grow(map.dim(), map.left_dim());
    file_.model = solver_->model();
    if (map.hash_bits > 0 && settings_.solver == Solver::moment) {
      std::vector<bool> is_unused(static_cast<std::size_t>(map.dim()));
      for (Index j = 0; j < map.dim(); ++j) is_unused[static_cast<std::size_t>(j)] = !map.is_used(j);
      clear_features(file_.model, is_unused);
    }
    if (lacks_evidence()) make_constant(file_.model);
    if (!file_.model.is_finite())
      throw DataError(options_.data.name(), 0, 0,
                      "these numbers have led to a model that is not finite, which was not saved (" +
                          model_name(options_) + " is as it was before); expected sizes nearer to 1: rescale them");
    file_.training = settings_.to_text();
    Archive saved;
    archive(saved);
    file_.state = saved.take();
  }

  void restore() {
    solver_ = make_train_solver<Scalar>(options_, settings_, file_.features, nullptr, hooks_.interrupted);
    Archive saved(std::move(file_.state));
    try {
      archive(saved);
    } catch (const std::runtime_error& error) {
      throw DataError(model_name(options_), 0, 0,
                      std::string("training cannot go on from this model: ") + error.what());
    }
    dim_ = file_.features.dim();
  }

  void finish() {
    summary_.rows = rows_of_this_run_;
    summary_.all_rows = settings_.rows;
    summary_.row_reads = summary_.rows + (solver_ ? solver_->extra_row_reads() : 0);
    if (!lines_ && summary_.outcome != Outcome::interrupted)
      throw DataError(options_.data.name(), 0, 0, "there is no row in it, expected rows to learn from");
    if (lines_) {
      lines_->finish(rate());
      save();
      summary_.progressive = lines_->all().metrics();
      summary_.metrics = lines_->recent();
      if (lines_->are_about_order()) leave_out_progressive_metrics();
      explain();
      if (summary_.outcome != Outcome::interrupted) look_again();
      explain_constant();
    }
    summary_.features = file_.features.seen();
    if (options_.model_path.empty() && lines_) {
      write_down();
      summary_.model_bytes = file_.to_bytes();
    }
    if (!options_.validation_path.empty() && lines_ && summary_.outcome != Outcome::interrupted) validate();
    summary_.seconds = elapsed();
    summary_.peak_rss_bytes = peak_rss_bytes();
  }

  /// Measures the model, which is complete by now, on the validation file.
  void validate() {
    PredictOptions check;
    check.data = options_.validation_data();
    check.threads = options_.threads;
    write_down();
    const EvaluateSummary evaluated = evaluate(std::move(file_), check, {hooks_.interrupted});
    if (evaluated.outcome == Outcome::interrupted)
      summary_.outcome = Outcome::interrupted;
    else
      summary_.validation = evaluated.metrics;
  }

  void leave_out_progressive_metrics() {
    for (Metrics* metrics : {&summary_.progressive, &summary_.metrics}) {
      constexpr double none = std::numeric_limits<double>::quiet_NaN();
      metrics->loss = metrics->rmse = metrics->mae = metrics->r2 = metrics->logloss = metrics->auc = metrics->accuracy =
          none;
    }
    summary_.warnings.emplace_back(
        "the rows come in an order that predicts their targets, such as sorted by the target: losses of rows predicted "
        "before they were learned would say nothing about other rows and are left out; shuffle the rows, or measure "
        "with --validation or evaluate");
  }

  /// The rows that were kept, again and again. What one pass has learned is saved by now, and stays where nothing is
  /// better.
  void look_again() {
    summary_.has_learned_all = true;
    if (!second_look_) return;
    const bool can_learn = !lines_->all().target_is_constant() && lines_->all().weight() > 0;
    // Where the rows are fitted exactly, nothing is left to find; unless they are copies of a few.
    if (second_look_->is_keeping() && can_learn &&
        (!solver_->stream()->fits_exactly() || second_look_->counts_exactly(file_.features))) {
      try {
        take(second_look_->refine(*solver_->stream(), file_.features, refine_options()));
      } catch (const PrivateFileError& error) {
        summary_.warnings.push_back(fmt::format("{}; the model comes from one pass", error.what()));
      }
    }
    if (!second_look_->why_not().empty()) summary_.warnings.push_back(second_look_->why_not());
  }

  [[nodiscard]] double in_units(double loss) const { return likelihood_of(file_.features.target.task).figure(loss); }

  [[nodiscard]] double noise_in_units() const {
    const Target& target = file_.features.target;
    return likelihood_of(target.task).has_noise_variance() ? solver_->noise() * target.scaling.scale : 0;
  }

  [[nodiscard]] RefineOptions refine_options() const {
    RefineOptions options;
    options.interrupted = hooks_.interrupted;
    if (hooks_.refine)
      options.progress = [this](const RefineStep& step) {
        hooks_.refine({step.level, step.objective, in_units(step.held_out), elapsed(), step.is_refit});
      };
    return options;
  }

  void take(RefineResult<Scalar> result) {
    summary_.row_reads += result.row_reads;
    if (result.interrupted) {
      summary_.outcome = Outcome::interrupted;
      return;
    }
    has_held_out_ = result.gain_over_constant.has_value();
    if (has_held_out_) evidence_.set_held_out(*result.gain_over_constant);
    if (result.takes_too_long)
      summary_.warnings.emplace_back(
          "these rows are too many to read them again in reasonable time, so the model comes from one pass; ask for it "
          "with --solver newton or --passes, or raise --memory for variational sweeps");
    if (result.held_out_rows > 0)
      summary_.improvement = Improvement{in_units(result.one_pass), in_units(result.refined), result.held_out_rows};
    if (!result.filter) {
      if (options_.asks_to_read_again() && second_look_->why_not().empty())
        summary_.warnings.emplace_back(
            "the rows are too few, or too odd, to be read again, so the model comes from one pass");
      if (has_held_out_) save();
      return;
    }
    if (options_.passes && result.levels + 1 < *options_.passes)
      summary_.warnings.push_back(
          fmt::format("{} passes were made, for after them there is nothing weaker to try", result.levels + 1));
    if (summary_.improvement && !(result.refined < result.one_pass))
      summary_.warnings.emplace_back(
          "held-out rows say that one pass is better than this solver; leave --solver out to have the better one");
    solver_->crown(std::move(*result.filter));
    save();
    summary_.passes = 1 + result.levels;
    summary_.solver = second_look_->solver();
    summary_.story = fmt::format("from all rows, read again: {}", result.level);
    summary_.noise = noise_in_units();
  }

  void explain() {
    const bool constant_target = lines_->all().target_is_constant();
    if (began_with_constant_target_ && !constant_target && !can_be_read_again(options_.data))
      summary_.warnings.push_back(
          fmt::format("the targets of the first {} rows are all the same, and what does not lie in files cannot be "
                      "read twice to see "
                      "the others; {} (give --task, or shuffle the rows)",
                      first_rows_,
                      likelihood_of(summary_.task).is_classification() ? "they were taken for one of two classes"
                                                                       : "the scale of the target is a guess"));
    if (lines_->all().weight() == 0)
      summary_.warnings.emplace_back("all rows have weight 0, so there was nothing to learn from");
    else if (constant_target)
      summary_.warnings.emplace_back(
          likelihood_of(file_.features.target.task).is_classification()
              ? "all rows that count are of one class, so the model cannot separate the classes"
              : "the target is the same in all rows, so the model is a constant");
    if (wild_rows_ > 0)
      summary_.warnings.push_back(fmt::format(
          "{} rows were a thousand times as long as usual; they were predicted, but not learned from", wild_rows_));
    if (const auto* stream = solver_->stream(); stream != nullptr && stream->left_out_features() > 0)
      summary_.warnings.push_back(fmt::format(
          "{} features were left out, because their values are too large or too small for {} precision; rescale them{}",
          stream->left_out_features(), sizeof(Scalar) == sizeof(float) ? "single" : "double",
          sizeof(Scalar) == sizeof(float) ? ", or use --precision double" : ""));
    const FeatureMap& map = file_.features;
    if (map.is_bilinear() &&
        (map.count_of_seen(FeatureMap::Side::left) == 0 || map.count_of_seen(FeatureMap::Side::right) == 0))
      summary_.warnings.emplace_back(
          "one of the two factors has no column that ever occurred, so there were no pairs to learn; look at --right");
    summary_.solver = settings_.solver == Solver::moment ? Solver::moment : Solver::kalman;
    summary_.story = solver_->story();
    summary_.noise = noise_in_units();
  }

  void explain_constant() {
    const bool lacks = lacks_evidence();
    summary_.is_constant = lacks || solver_->is_constant();
    if (!summary_.is_constant || lines_->all().target_is_constant() || summary_.outcome == Outcome::interrupted) return;
    if (lacks && !solver_->is_constant())
      summary_.warnings.push_back(fmt::format(
          "the model is a constant probability: on rows that it had not seen, the features gain {:.1f} nats of "
          "log-likelihood over the best constant, and at least {:g} are needed to tell a gain from chance; more rows "
          "of "
          "the rarer class may change that",
          std::max(0.0, evidence_.nats()), ClassEvidence::least_nats));
    else
      summary_.warnings.push_back(solver_->why_constant());
  }

  const TrainOptions& options_;
  const TrainHooks& hooks_;
  ModelFile& file_;
  TrainSettings& settings_;
  LockedFile& output_;  ///< at options_.model_path; unused if that is empty
  int threads_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<TrainSolver<Scalar>> solver_;
  std::optional<SecondLook<Scalar>> second_look_;  ///< of fresh runs
  std::optional<ProgressLines> lines_;
  std::vector<double> predictions_;
  Index dim_ = 0;
  Index rows_of_this_run_ = 0;
  Index wild_rows_ = 0;
  Index first_rows_ = 0;  ///< of the first block
  bool began_with_constant_target_ = false;
  ClassEvidence evidence_;     ///< of all runs
  bool has_held_out_ = false;  ///< rows were held out in this run
  double usual_length_ = 0;    ///< the median squared length of the first rows
  TrainSummary summary_;
};

}  // namespace

TrainSummary train(const TrainOptions& options, const TrainHooks& hooks) {
  options.validate();
  LockedFile output(options.model_path);
  ModelFile file;
  if (options.resume)
    file = options.model_path.empty() ? ModelFile::from_bytes(options.model_bytes, model_name(options))
                                      : ModelFile::load(options.model_path);
  TrainSettings settings = options.resume ? TrainSettings::resumed(options, file) : TrainSettings::fresh(options, file);
  // What cannot be written is known before the work is done.
  if (!options.model_path.empty()) const OutputFile writable(options.model_path);
  if (settings.precision == Precision::single_precision)
    return Training<float>(options, hooks, file, settings, output).run();
  return Training<double>(options, hooks, file, settings, output).run();
}

}  // namespace dyad
