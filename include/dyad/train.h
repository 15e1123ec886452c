#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/evaluate.h>
#include <dyad/shape.h>

namespace dyad {

/// Options of train(). A field without a value has the stated default; with `resume`, it has the value of the model,
/// and a value that contradicts the model is an error.
struct TrainOptions {
  DataOptions data;              ///< rows
  ColumnOptions columns;         ///< roles of the columns
  std::string model_path;        ///< model file to write; may be empty for rows in memory (TrainSummary::model_bytes)
  std::string model_bytes;       ///< resume without a path: bytes of the model to continue from
  std::optional<Solver> solver;  ///< default: automatic, that is, anova for tables and matrices with a numeric column;
                                 ///< otherwise kalman, then newton or sampling on cached rows
  std::optional<Kind> kind;      ///< default: gfm
  std::optional<Index> rank;     ///< selects a low-rank model; default: 8; phase: 1; one pass over sparse rows: 16 if
                                 ///< the first rows are predicted no worse than with 8
  bool has_curves = true;        ///< anova: false restricts the model to weights, squares and products
  std::optional<Diagonal> diagonal;    ///< default: free with numeric columns, zero with categories and indicators only
  std::optional<Index> batch;          ///< moment: rows in the first update; default: min(6 x rank x dim, 4096)
  std::optional<Precision> precision;  ///< default: double
  std::optional<std::uint64_t> seed;   ///< default: 1
  std::optional<std::pair<double, double>> range;  ///< bounds at which targets are censored; default: estimated
  std::optional<Index> half_life;  ///< rows after which the weight of a row is halved; default: no forgetting
  std::optional<Index> passes;     ///< 1: one pass; n > 1: the first pass and n - 1 regularization levels (newton) or
                                   ///< sweeps (variational); default: while the loss of held-out rows decreases.
                                   ///< kalman: at most n passes, while that loss decreases; default: 1
  std::optional<Index> samples;    ///< sampling: number of samples in the average; default: until the estimated excess
                                   ///< of the held-out loss is 0.1%, at most 300
  /// kalman: multiplies the initial variances of the prior, which is then estimated along the stream; default: 1
  std::optional<double> prior_scale;
  double memory = 1e9;          ///< bytes for cached rows and data derived from them; 0: no cache
  bool resume = false;          ///< continue from `model_path` or `model_bytes`
  Index checkpoint_every = 0;   ///< rows between checkpoints; 0: the model is written at the end only
  std::string validation_path;  ///< file for the final metrics and the selection of the level; empty: none
  int threads = 0;              ///< 0: all cores

  /// True if the options require more than one pass.
  [[nodiscard]] bool requests_multiple_passes() const;

  /// Returns the validation file as a source of rows. Its format is that of its extension, or else that of `data`.
  [[nodiscard]] DataOptions validation_data() const;

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

/// Progressive (test-then-train) losses of the first pass after a number of rows. Losses are NaN while the order of the
/// rows predicts the targets.
struct TrainProgress {
  Index rows = 0;              ///< read so far
  double average_loss = 0;     ///< rmse or logloss over all rows so far
  double recent_loss = 0;      ///< loss of the rows since the previous report
  double constant_loss = 0;    ///< loss of the best constant over all rows
  double rows_per_second = 0;  ///< average so far
  std::int64_t rss_bytes = 0;  ///< resident set
};

/// Progress of multi-pass training after one iteration.
struct MultiPassProgress {
  std::string level;      ///< sweep or regularization level
  double objective = 0;   ///< per row; NaN: not computed
  double held_out = 0;    ///< rmse or logloss of held-out rows or of the validation file; NaN: not measured
  double seconds = 0;     ///< since the start
  bool is_refit = false;  ///< true: final fit with all rows at the selected level
};

/// Losses of held-out rows or of the validation file, rmse or logloss.
struct HeldOutLosses {
  double one_pass = 0;      ///< of the model of the first pass
  double multi_pass = 0;    ///< of the model of multi-pass training
  Index held_out_rows = 0;  ///< number of rows
};

/// Properties of the data, known after the first rows are read.
struct TrainStart {
  Task task = Task::regression;          ///< type of the target
  Kind kind = Kind::gfm;                 ///< of the model
  Index rank = 0;                        ///< k
  Diagonal diagonal = Diagonal::tied;    ///< coefficients of the squares
  Index features = 0;                    ///< number of features so far
  std::vector<std::string> numeric;      ///< names of numeric columns; libsvm and npy: empty
  std::vector<std::string> categorical;  ///< names of categorical columns
  std::string target;                    ///< name of the target
  std::string negative;                  ///< classes: label of the negative class
  std::string positive;                  ///< classes: label of the positive class
  std::vector<std::string> classes;      ///< more than two classes: their labels
  std::string plan;                      ///< one line: the selected solvers
  double low = 0;                        ///< lower bound at which targets are censored, if `has_low`
  double high = 0;                       ///< upper bound at which targets are censored, if `has_high`
  bool has_low = false;                  ///< the target has a lower bound
  bool has_high = false;                 ///< the target has an upper bound
  Index first_rows = 0;                  ///< number of rows that determined columns and scales
  Index rows_before = 0;                 ///< rows of the previous runs that this run resumes
};

/// What train() did about a row order that hurts the first pass.
enum class OrderRemedy {
  none,      ///< the order does not hurt, or the solver is not affected by it
  warning,   ///< the model of the first pass was kept, because it is better than one from a sample of the rows
  sample,    ///< the model was trained on a uniform sample of the rows, because they are not cached
  shuffled,  ///< the model was trained on the cached rows in random order
};

/// Names of the remedies in JSON.
inline constexpr std::array order_remedy_names{
    std::pair{"none", OrderRemedy::none}, std::pair{"warning", OrderRemedy::warning},
    std::pair{"sample", OrderRemedy::sample}, std::pair{"shuffled", OrderRemedy::shuffled}};

/// Result of train().
struct TrainSummary {
  Outcome outcome = Outcome::budget;      ///< budget: training is complete
  Task task = Task::regression;           ///< type of the target
  Index rows = 0;                         ///< rows of this run
  Index all_rows = 0;                     ///< rows of this run and of the previous runs that it resumes
  Index row_reads = 0;                    ///< rows read, counting repeated reads
  double seconds = 0;                     ///< elapsed time
  std::int64_t peak_rss_bytes = 0;        ///< peak resident set of the process
  Metrics progressive;                    ///< of all rows, each predicted before it is learned; NaN, with a warning, if
                                          ///< the order of the rows predicts the targets
  Metrics metrics;                        ///< as `progressive`, for approximately the last half of the rows
  std::optional<Metrics> validation;      ///< of the final model on the validation file
  Index features = 0;                     ///< number of features
  Index rank = 0;                         ///< k of the model; 0: no low-rank model. sampling: of the average
  Index samples = 0;                      ///< sampling: number of samples in the average
  OrderRemedy order = OrderRemedy::none;  ///< remedy for the order of the rows
  Index checkpoints = 0;                  ///< number of model files written before the end
  bool is_constant = false;               ///< the model is a constant: the solver found no signal
  Solver solver = Solver::automatic;      ///< solver that produced the final model
  bool has_read_all_rows = false;         ///< false: the run was interrupted before the end of the data
  Index passes = 1;                       ///< 1 for the first pass, plus the number of regularization levels or sweeps
  std::optional<HeldOutLosses> held_out;  ///< empty: without multi-pass training
  std::string origin;                     ///< one line: how the model was estimated
  std::string model_bytes;                ///< content of the model file if `model_path` is empty
  double noise = 0;                       ///< standard deviation of the residuals; 0: exact fit or unknown
  /// Diagnosis of measurements (kinds sensing and phase) and of dense bilinear rows. Empty for other models, and if no
  /// rows are cached.
  std::optional<FitStatus> status;
  std::string status_text;            ///< the status in words, with what to change
  Index outliers = 0;                 ///< measurements that the fit excludes
  std::vector<double> matrix_errors;  ///< measurements: standard errors of M, row-major; empty: not available
  std::vector<double> factor_errors;  ///< phase retrieval: standard errors of the signal; empty: not available
  std::vector<std::string> warnings;  ///< for the user

  /// More than two classes: their labels. `metrics` are then those of held-out rows; NaN if no rows were held out.
  std::vector<std::string> classes;
  std::vector<TrainSummary> class_summaries;  ///< training of each class against the others, on all rows
  double temperature = 1;  ///< more than two classes: factor on the log-odds of the classes before the softmax
  std::vector<std::pair<Index, double>> trace;  ///< class_summaries: progressive loss by number of rows
};

/// Callbacks of train(), called in the thread of the caller.
struct TrainHooks {
  std::function<void(const TrainStart&)> start;  ///< after the first rows
  /// After 1, 2, 4, 8, ... rows and at the end. Not called for more than two classes.
  std::function<void(const TrainProgress&)> progress;
  std::function<void(const TrainProgress&)> status;  ///< in between, at most ten times per second
  /// After each iteration of multi-pass training. More than two classes: after the held-out rows are predicted, and
  /// after each class is trained.
  std::function<void(const MultiPassProgress&)> multi_pass;
  std::function<bool()> interrupted;  ///< polled between blocks; true saves and ends the run
};

/// Trains a model on rows of files, of standard input or in memory, and writes the model file.
///
///     dyad::TrainOptions options;
///     options.data.paths = {"houses.csv"};
///     options.columns.target = "price";
///     options.model_path = "houses.dyad";
///     const dyad::TrainSummary summary = dyad::train(options);
///
/// Standard input is read once. Rows of files and of memory are cached within `TrainOptions::memory`, or read again,
/// for multi-pass training. For at most 4,096 rows in memory, weights act as exact repetition counts and row order has
/// no effect. The model file is replaced only by a complete new file.
///
/// More than two classes: one model of each class against the others is trained. The probabilities are the softmax of
/// their log-odds, multiplied by a temperature that minimizes the log-loss of held-out rows. This requires files or
/// rows in memory, which are read several times. The model file is written at the end; an interrupted run writes none.
///
/// \throws DataError for invalid data or an invalid model file, std::invalid_argument for invalid options,
///         std::runtime_error if a file cannot be read or written
TrainSummary train(const TrainOptions& options, const TrainHooks& hooks = {});

}  // namespace dyad
