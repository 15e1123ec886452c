#include "training/train_classes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <dyad/error.h>

#include "base/peak_memory.h"
#include "base/random.h"
#include "base/text.h"
#include "encoding/sources/row_reader.h"
#include "inference/class_block_predictor.h"
#include "inference/class_metrics.h"
#include "serialization/class_models.h"
#include "training/class_task.h"
#include "training/class_temperature.h"
#include "training/state/anova_training.h"

namespace dyad {
namespace {

/// Total weight of the rows from which on rows are held out. Fewer rows determine neither the solver nor the
/// temperature: with 20 held-out rows, the standard error of the log-loss is about a third of the log-loss.
constexpr double min_held_out_weight = 100;
/// Number of rows up to which every row is held out once, by five folds. One fold holds out a fifth of more rows.
constexpr Index max_rows_of_all_folds = 500;
constexpr Index fold_count = 5;
/// Rows that are used for the models of the fold and its held-out rows; a random sample of more rows. The temperature
/// is one number, whose standard error on 4,000 rows is about 1%.
constexpr Index max_fold_rows = 20'000;
/// Number of columns up to which the solver anova is a candidate beside sampling. A fit takes time in proportion to the
/// number of pairs of columns: 0.05 s for 13 columns and 3.3 s for 64 columns (1,437 rows, one class).
constexpr std::size_t max_compared_columns = 32;
/// Number of entries up to which sampling is a candidate for tables. It takes 0.4 s for 1e5 entries and one class.
constexpr double max_sampled_entries = 2e6;
/// Samples of the models of folds. Their log-loss exceeds that of more samples by less than 1%.
constexpr Index fold_samples = 100;

/// What a first pass over the rows finds.
struct ClassData {
  std::vector<std::string> labels;
  Index rows = 0;
  double weight = 0;
  FeatureMap map;
};

/// Rows that models of a fold use, by the number of the row.
class ClassFolds {
 public:
  ClassFolds(Index rows, std::uint64_t seed)
      : count_(rows <= max_rows_of_all_folds ? fold_count : 1),
        share_(static_cast<double>(max_fold_rows) / static_cast<double>(std::max<Index>(1, rows))),
        seed_(seed) {}

  [[nodiscard]] Index count() const { return count_; }
  [[nodiscard]] bool trains_on(Index row, Index fold) const { return is_used(row) && fold_of(row) != fold; }
  [[nodiscard]] bool holds_out(Index row, Index fold) const { return is_used(row) && fold_of(row) == fold; }

 private:
  static constexpr std::uint64_t sample_stream = start_stream - 11;

  /// Two uniform numbers of the row.
  [[nodiscard]] std::pair<double, double> uniform(Index row) const {
    Random random(seed_, sample_stream - static_cast<std::uint64_t>(row) - 1);
    const double first = random.uniform();
    return {first, random.uniform()};
  }
  /// Row 0 is always used, so that no first block is empty.
  [[nodiscard]] bool is_used(Index row) const { return share_ >= 1 || row == 0 || uniform(row).first < share_; }
  [[nodiscard]] Index fold_of(Index row) const {
    const auto fold = static_cast<Index>(fold_count * uniform(row).second);
    return row == 0 && count_ == 1 ? 1 : fold;
  }

  Index count_;
  double share_;
  std::uint64_t seed_;
};

/// Training of a model of more than two classes. Not thread-safe.
class ClassTraining {
 public:
  ClassTraining(const TrainOptions& options, const TrainHooks& hooks) : options_(options), hooks_(hooks) {
    if (options.checkpoint_every > 0)
      throw std::invalid_argument(
          "checkpoint_every is not available for more than two classes, whose model is written at the end");
    if (options.range)
      throw std::invalid_argument("range is set, but the target is a class; leave it out, or set task to regression");
    summary_.task = Task::classification;
  }

  TrainSummary run(LockedFile& output) {
    if (options_.resume)
      resume();
    else
      train();
    summary_.classes = models_.labels;
    summary_.temperature = models_.temperature;
    summary_.seconds = elapsed_seconds();
    summary_.peak_rss_bytes = peak_rss_bytes();
    if (was_interrupted()) return std::move(summary_);
    const std::string bytes = models_.to_bytes();
    if (!options_.validation_path.empty()) {
      PredictOptions options;
      options.data = options_.validation_data();
      options.threads = options_.threads;
      summary_.validation = evaluate_classes(bytes, options, {hooks_.interrupted}).metrics;
    }
    if (options_.model_path.empty())
      summary_.model_bytes = bytes;
    else
      output.replace(bytes);
    summary_.seconds = elapsed_seconds();
    return std::move(summary_);
  }

 private:
  [[nodiscard]] bool was_interrupted() const { return summary_.outcome == Outcome::interrupted; }
  [[nodiscard]] double elapsed_seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  /// Reads all rows once.
  ClassData read_classes() {
    ClassData data;
    ColumnOptions columns = options_.columns;
    columns.task = Task::classification;
    data.map.kind = options_.kind.value_or(Kind::gfm);
    if (options_.data.dataset != nullptr)
      data.map.target.set_classes(options_.data.dataset->labels, -1);
    else
      data.map.target.collect_classes();
    {
      RowReader<double> reader(
          data.map,
          {.data = options_.data, .columns = columns, .interrupted = hooks_.interrupted, .threads = options_.threads});
      RowBlock<double> block;
      auto next = reader.next(block);
      for (; next == RowReader<double>::Next::block; next = reader.next(block)) {
        data.rows += block.count();
        for (Index i = 0; i < block.count(); ++i)
          data.weight += block.weights.empty() ? 1 : block.weights[static_cast<std::size_t>(i)];
      }
      if (next == RowReader<double>::Next::interrupted) summary_.outcome = Outcome::interrupted;
      reader.stop();
    }
    data.labels = data.map.target.classes();
    if (options_.data.dataset == nullptr) Target::sort_labels(data.labels);
    if (data.labels.size() < 3 && !was_interrupted())
      throw DataError(options_.data.name(), 0, 0,
                      fmt::format("the rows have {} classes, but another file has more; expected all classes in the "
                                  "training rows",
                                  data.labels.size()));
    models_.target = data.map.target.name;
    models_.labels = data.labels;
    return data;
  }

  void train() {
    const ClassData data = read_classes();
    if (was_interrupted()) return;
    const std::vector<std::optional<Solver>> candidates = candidate_solvers(data);
    candidate_count_ = candidates.size();
    std::optional<Solver> solver = candidates.front();
    if (data.weight >= min_held_out_weight) {
      const ClassFolds folds(data.rows, options_.seed.value_or(1));
      double best_loss = std::numeric_limits<double>::infinity();
      for (const std::optional<Solver>& candidate : candidates) {
        const HeldOutClasses rows = predict_held_out(folds, candidate);
        if (was_interrupted()) return;
        const ClassTemperature temperature = fit_temperature(rows, {});
        const double loss = class_log_loss(rows, temperature.value);
        report_held_out(candidate, loss);
        if (!(loss < best_loss)) continue;
        best_loss = loss;
        solver = candidate;
        models_.temperature = temperature.value;
        models_.precision = temperature.precision;
        add_metrics(rows);
      }
    } else {
      models_.precision = ClassTemperature().precision;
      add_metrics({});
    }
    TrainOptions options = options_;
    options.solver = solver;
    train_all(options, {});
  }

  /// Continues the training of all classes with further rows. They are predicted before they are learned, and these
  /// predictions update the temperature.
  void resume() {
    const std::string name = options_.model_path.empty() ? "the model" : options_.model_path;
    models_ = ClassModels::from_bytes(
        options_.model_path.empty() ? options_.model_bytes : ModelFile::read_bytes(options_.model_path), name);
    if (options_.data.dataset == nullptr && !can_reread(options_.data))
      throw std::invalid_argument(
          "training of more than two classes reads the rows several times; use files instead of standard input");
    if (options_.data.dataset != nullptr && options_.data.dataset->labels.size() != models_.labels.size())
      throw std::invalid_argument("the rows must have the labels of the model that is resumed");
    LoadedClassModels models(models_, name);
    const HeldOutClasses rows = predict_rows(models, [](Index row) { return row < max_fold_rows; });
    if (was_interrupted()) return;
    const ClassTemperature temperature = fit_temperature(rows, {models_.temperature, models_.precision});
    add_metrics(rows);
    models_.temperature = temperature.value;
    models_.precision = temperature.precision;
    train_all(options_, {});
  }

  /// Solvers among which held-out rows select. The first one is used without held-out rows.
  [[nodiscard]] std::vector<std::optional<Solver>> candidate_solvers(const ClassData& data) const {
    const bool is_automatic = options_.solver.value_or(Solver::automatic) == Solver::automatic;
    if (!is_automatic || !allows_anova(options_) || !anova_obstacle(data.map, options_.memory).empty() ||
        has_many_levels(data.map) || !options_.has_curves || options_.samples)
      return {options_.solver};
    const std::size_t columns = data.map.columns().size();
    std::vector<std::optional<Solver>> candidates;
    const bool can_sample = static_cast<double>(data.rows) * static_cast<double>(columns) <= max_sampled_entries;
    if (columns <= max_compared_columns || !can_sample || data.weight < min_held_out_weight)
      candidates.emplace_back(Solver::anova);
    if (can_sample && data.weight >= min_held_out_weight) candidates.emplace_back(Solver::sampling);
    return candidates;
  }

  /// Trains the models of all folds and predicts their held-out rows.
  HeldOutClasses predict_held_out(const ClassFolds& folds, const std::optional<Solver>& solver) {
    TrainOptions options = options_;
    options.solver = solver;
    options.validation_path.clear();
    options.samples = std::min(options.samples.value_or(fold_samples), fold_samples);
    HeldOutClasses result;
    for (Index fold = 0; fold < folds.count() && !was_interrupted(); ++fold) {
      ClassModels models = models_;
      models.parts.clear();
      for (Index c = 0; c < std::ssize(models_.labels) && !was_interrupted(); ++c) {
        TrainHooks hooks;
        hooks.interrupted = hooks_.interrupted;
        set_start_hook(hooks);
        models.parts.push_back(
            train_class(options, hooks, c, [&](Index row) { return folds.trains_on(row, fold); }).model_bytes);
      }
      if (was_interrupted()) return {};
      LoadedClassModels loaded(std::move(models), "the model of a fold");
      HeldOutClasses rows = predict_rows(loaded, [&](Index row) { return folds.holds_out(row, fold); });
      result.classes = rows.classes;
      result.log_odds.insert(result.log_odds.end(), rows.log_odds.begin(), rows.log_odds.end());
      result.targets.insert(result.targets.end(), rows.targets.begin(), rows.targets.end());
      result.weights.insert(result.weights.end(), rows.weights.begin(), rows.weights.end());
    }
    return result;
  }

  /// Log-odds of the rows with uses(row).
  template <typename Uses>
  HeldOutClasses predict_rows(LoadedClassModels& models, Uses&& uses) {
    ClassBlockPredictor predictor(models, options_.data, options_.threads, {hooks_.interrupted},
                                  TableEncoder::Targets::needed, false);
    HeldOutClasses result;
    result.classes = static_cast<Index>(models.count());
    PredictSummary summary;
    Index first_row = 0;
    for (; predictor.next(summary); first_row += predictor.block().count()) {
      const RowBlock<double>& block = predictor.block();
      for (std::size_t i = 0; i < block.lines.size(); ++i) {
        if (!uses(first_row + static_cast<Index>(i))) continue;
        const auto row = predictor.log_odds().begin() + static_cast<Index>(i) * result.classes;
        result.log_odds.insert(result.log_odds.end(), row, row + result.classes);
        result.targets.push_back(static_cast<Index>(block.targets[i]));
        result.weights.push_back(block.weights.empty() ? 1 : block.weights[i]);
      }
    }
    summary_.row_reads += first_row;
    if (summary.outcome == Outcome::interrupted) summary_.outcome = Outcome::interrupted;
    return result;
  }

  TrainSummary train_class(TrainOptions options, const TrainHooks& hooks, Index index,
                           std::function<bool(Index)> uses_row) {
    options.model_path.clear();
    options.columns.task = Task::classification;
    if (options.resume) options.model_bytes = models_.parts[static_cast<std::size_t>(index)];
    LockedFile no_file{std::string()};
    const ClassTask task{models_.labels, index, std::move(uses_row)};
    TrainSummary summary = train_model(options, hooks, &task, no_file);
    summary_.row_reads += summary.row_reads;
    if (summary.outcome == Outcome::interrupted) summary_.outcome = Outcome::interrupted;
    return summary;
  }

  /// Trains the final models.
  void train_all(const TrainOptions& options, std::function<bool(Index)> uses_row) {
    std::vector<std::string> parts;
    for (Index c = 0; c < std::ssize(models_.labels); ++c) {
      std::vector<std::pair<Index, double>> trace;
      TrainSummary summary = train_class(options, class_hooks(trace), c, uses_row);
      if (was_interrupted()) return;
      parts.push_back(std::move(summary.model_bytes));
      summary.model_bytes.clear();
      summary.trace = std::move(trace);
      add_class(c, std::move(summary));
    }
    models_.parts = std::move(parts);
    for (const auto& [warning, labels] : warned_labels_)
      summary_.warnings.push_back(
          fmt::format("{} {}: {}", labels.size() == 1 ? "class" : "classes", fmt::join(labels, ", "), warning));
  }

  [[nodiscard]] TrainHooks class_hooks(std::vector<std::pair<Index, double>>& trace) {
    TrainHooks hooks;
    hooks.interrupted = hooks_.interrupted;
    hooks.progress = [&trace](const TrainProgress& point) { trace.emplace_back(point.rows, point.average_loss); };
    set_start_hook(hooks);
    return hooks;
  }

  /// Calls TrainHooks::start when the first model of all is trained.
  void set_start_hook(TrainHooks& hooks) {
    if (!hooks_.start || std::exchange(has_started_, true)) return;
    hooks.start = [this](TrainStart start) {
      start.classes = models_.labels;
      start.plan = fmt::format("{} models of one class against the others; {}", models_.labels.size(),
                               candidate_count_ > 1 ? "anova or sampling, selected on held-out rows" : start.plan);
      if (candidate_count_ > 1) start.rank = 0;
      hooks_.start(start);
    };
  }

  void report_held_out(const std::optional<Solver>& solver, double loss) const {
    if (!hooks_.multi_pass) return;
    const char* name = solver == Solver::anova ? " anova" : solver == Solver::sampling ? " sampling" : "";
    hooks_.multi_pass({fmt::format("held-out rows, softmax{}", name), std::numeric_limits<double>::quiet_NaN(), loss,
                       elapsed_seconds(), false});
  }

  /// Metrics of held-out rows at the current temperature; NaN without rows.
  void add_metrics(const HeldOutClasses& rows) {
    ClassMetricSums sums(models_.labels);
    for (std::size_t i = 0; i < rows.targets.size(); ++i) {
      std::vector<double> probabilities(rows.row(i).begin(), rows.row(i).end());
      softmax(probabilities, models_.temperature);
      sums.add(static_cast<std::size_t>(rows.targets[i]), probabilities, rows.weights[i]);
    }
    constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
    Metrics& progressive = summary_.progressive;
    progressive.task = Task::classification;
    progressive.logloss = progressive.auc = progressive.accuracy = progressive.loss = progressive.constant_loss =
        not_measured;
    summary_.metrics = sums.weight() > 0 ? sums.metrics() : progressive;
  }

  /// Adds the summary of the model of a class.
  void add_class(Index index, TrainSummary summary) {
    summary_.rows = summary.rows;
    summary_.all_rows = summary.all_rows;
    summary_.features = std::max(summary_.features, summary.features);
    summary_.rank = std::max(summary_.rank, summary.rank);
    summary_.samples = std::max(summary_.samples, summary.samples);
    summary_.passes = std::max(summary_.passes, summary.passes);
    summary_.has_read_all_rows = true;
    summary_.is_constant = (index == 0 || summary_.is_constant) && summary.is_constant;
    if (index == 0) {
      summary_.solver = summary.solver;
      summary_.origin = fmt::format("{} models of one class against the others, the first by {}", models_.labels.size(),
                                    summary.origin);
    }
    const std::string& label = models_.labels[static_cast<std::size_t>(index)];
    for (const std::string& warning : summary.warnings) warned_labels_[warning].push_back(quote_text(label));
    if (hooks_.multi_pass) {
      constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();
      hooks_.multi_pass({fmt::format("class {}", label), not_measured, not_measured, elapsed_seconds(), true});
    }
    summary_.class_summaries.push_back(std::move(summary));
  }

  const TrainOptions& options_;
  const TrainHooks& hooks_;
  ClassModels models_;
  TrainSummary summary_;
  std::size_t candidate_count_ = 1;
  bool has_started_ = false;                                       ///< TrainHooks::start was passed on
  std::map<std::string, std::vector<std::string>> warned_labels_;  ///< labels of the classes with each warning
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

bool is_several_classes(const TrainOptions& options) {
  if (options.data.dataset != nullptr && options.data.dataset->labels.size() > 2) return true;
  if (!options.resume) return false;
  return ClassModels::is_class_file(options.model_path.empty() ? options.model_bytes
                                                               : ModelFile::read_bytes(options.model_path));
}

TrainSummary train_classes(const TrainOptions& options, const TrainHooks& hooks, LockedFile& output) {
  return ClassTraining(options, hooks).run(output);
}

}  // namespace dyad
