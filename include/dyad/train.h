#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dyad/data.h>
#include <dyad/metrics.h>
#include <dyad/moment.h>
#include <dyad/recover.h>

namespace dyad {

/// Learns a model from files, a pipe or memory. Rows of files are read again and again as long as that helps; of few
/// rows in memory each counts exactly as often as its weight says, wherever it stands. With `resume`,
/// what is not given comes from the model, and what is given must agree with it.
struct TrainOptions {
  DataOptions data;
  ColumnOptions columns;
  std::string model_path;        ///< rows in memory: may be empty, and the model is in the summary alone
  std::string model_bytes;       ///< resume without a path: the model to go on from
  std::optional<Solver> solver;  ///< automatic unless given: kalman, then newton or variational where rows are kept
  std::optional<Kind> kind;      ///< gfm unless given
  std::optional<Index> rank;     ///< 8 unless given; phase: 1
  std::optional<Diagonal>
      diagonal;                ///< unless given: free where there are columns of numbers, zero for categories and flags
  std::optional<Index> batch;  ///< rows in the first update; 6 x rank x dim, at most 4096, unless given
  std::optional<Precision> precision;              ///< double unless given
  std::optional<std::uint64_t> seed;               ///< 1 unless given
  std::optional<std::pair<double, double>> range;  ///< that targets cannot leave; found in the first rows unless given
  std::optional<Index> half_life;  ///< rows after which data counts half, for streams that drift; never unless given
  std::optional<Index> passes;     ///< 1: one; more: the first, and so many levels less one of newton or variational;
                                   ///< unless given, files are read again as long as held-out rows say that it helps
  double memory = 1e9;             ///< bytes for rows that are kept, and what is made of them; 0: none
  bool resume = false;
  Index checkpoint_every = 0;   ///< rows; 0: only at the end
  std::string validation_path;  ///< a file to measure the finished model on, and to say how far to go
  int threads = 0;              ///< 0: all cores

  /// Whether rows are to be read again in so many words.
  [[nodiscard]] bool asks_to_read_again() const;

  /// The validation file, in the format of its name or else that of the rows.
  [[nodiscard]] DataOptions validation_data() const;

  void validate() const;
};

/// After so many rows; each was predicted before it was learned. Losses are NaN while they would measure the order of
/// the rows rather than the model.
struct TrainProgress {
  Index rows = 0;
  double average_loss = 0;     ///< rmse or logloss, over all rows
  double recent_loss = 0;      ///< since the last line
  double constant_loss = 0;    ///< of the best constant over all rows
  double rows_per_second = 0;  ///< so far
  std::int64_t rss_bytes = 0;
};

/// After a step over all rows, behind the first pass.
struct RefineProgress {
  std::string level;      ///< which sweep, or which ridge
  double objective = 0;   ///< per row, to be made small; NaN: none
  double held_out = 0;    ///< rmse or logloss of rows that were held out, or of the validation file; NaN: not measured
  double seconds = 0;     ///< since the start
  bool is_refit = false;  ///< with all rows, once the level is chosen
};

/// What reading rows again has brought, by rows that were held out or the validation file.
struct Improvement {
  double one_pass = 0;  ///< rmse or logloss
  double refined = 0;
  Index held_out_rows = 0;
};

/// What training found in the data, once its first rows are read.
struct TrainStart {
  Task task = Task::regression;
  Kind kind = Kind::gfm;
  Index rank = 0;
  Diagonal diagonal = Diagonal::tied;
  Index features = 0;                ///< so far
  std::vector<std::string> numbers;  ///< columns by name; libsvm and npy: empty
  std::vector<std::string> categories;
  std::string target;
  std::string negative;  ///< classes
  std::string positive;
  std::string plan;  ///< one line: which solver does what with such data
  double low = 0;    ///< of the target's range
  double high = 0;
  bool has_low = false;
  bool has_high = false;
  Index first_rows = 0;   ///< the rows that decided on columns and scales
  Index rows_before = 0;  ///< of the runs that this one resumes
};

struct TrainSummary {
  Outcome outcome = Outcome::budget;  ///< budget: all rows are read
  Task task = Task::regression;
  Index rows = 0;      ///< of this run
  Index all_rows = 0;  ///< with those of the runs that this one resumed
  Index row_reads = 0;
  double seconds = 0;
  std::int64_t peak_rss_bytes = 0;
  Metrics progressive;  ///< of all rows, each predicted before it was learned; NaN if the rows come in an order that
                        ///< predicts the targets (rows sorted by the target), with a warning
  Metrics metrics;      ///< the same for the latest half of them or so: how good the model is by now
  std::optional<Metrics> validation;
  Index features = 0;
  Index checkpoints = 0;
  bool is_constant = false;           ///< the data carried no signal that this solver can see
  Solver solver = Solver::automatic;  ///< who made the model in the end
  bool has_learned_all = false;       ///< once: an interruption came later, if at all
  Index passes = 1;                   ///< the first one, and the levels behind it
  std::optional<Improvement> improvement;
  std::string origin;       ///< one line: where the model comes from
  std::string model_bytes;  ///< where it has no path: what its file would hold
  double noise = 0;         ///< standard deviation of what the model cannot explain; 0: not known
  std::vector<std::string> warnings;
};

struct TrainHooks {
  std::function<void(const TrainStart&)> start;
  std::function<void(const TrainProgress&)> progress;  ///< at 1, 2, 4, 8, ... rows and at the end
  std::function<void(const TrainProgress&)> status;    ///< in between, at most ten times a second
  std::function<void(const RefineProgress&)> refine;
  std::function<bool()> interrupted;  ///< asked between blocks; true saves the model and ends the run
};

/// The model file is replaced only by a complete new one. Throws DataError for bad data or a model that cannot be read,
/// std::invalid_argument for wrong usage, std::runtime_error where a file cannot be read or written.
TrainSummary train(const TrainOptions& options, const TrainHooks& hooks = {});

}  // namespace dyad
