#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dyad/dataset.h>

/// \file
/// Distributed training. The driver sends a request to all workers. Each worker computes sums over its rows. The driver
/// computes the next request from the total of these sums. A request or a response has a few numbers per parameter.
/// Requests and responses are byte strings, which the caller transports.

namespace dyad {

/// Sums over rows: the response of a worker, or the sufficient statistics of the moment solver. The sums of disjoint
/// sets of rows can be added.
class Statistics {
 public:
  /// Number of rows in the sums.
  [[nodiscard]] Index rows() const;
  /// Serializes the sums.
  [[nodiscard]] std::string to_bytes() const;
  /// Restores sums from the result of to_bytes().
  /// \throws DataError if the bytes are damaged or of another kind
  static Statistics from_bytes(const std::string& bytes);

  /// Adds the sums of other rows.
  /// \throws std::invalid_argument if the sums belong to different models or requests
  Statistics& operator+=(const Statistics& other);

  std::string model;                                  ///< fingerprint of the model or request
  std::map<std::string, std::vector<double>> sums{};  ///< arrays of sums by name
  double min_target = 0;                              ///< smallest target, in its units
  double max_target = 0;                              ///< largest target, in its units
};

/// Computes the sums of one iteration of the moment solver over some of the rows. One iteration consists of
/// partial_statistics() for each part of the rows, the addition of the results, and apply_statistics(). The models do
/// not depend on the partitioning, up to rounding.
///
/// \param model        bytes of a model file of the moment solver for regression
/// \param rows         rows with targets; features that the model does not contain are ignored
/// \param threads      0: all cores
/// \param interrupted  polled between blocks; true ends the run
/// \throws std::invalid_argument for other models, DataError for invalid rows
Statistics partial_statistics(const std::string& model, const DatasetView& rows, int threads = 0,
                              const std::function<bool()>& interrupted = {});

/// Result of apply_statistics().
struct StatisticsUpdate {
  std::string model;            ///< bytes of the next model
  double rmse = 0;              ///< of the model before the update, on the rows of the statistics
  bool is_line_search = false;  ///< true: the next iteration evaluates a step length
  Index steps_tried = 0;        ///< number of steps evaluated by line searches so far
  Index steps_taken = 0;        ///< number of steps accepted so far
};

/// Computes the next model of the moment solver from the sums of all rows.
/// \throws std::invalid_argument if the statistics belong to another model or contain no rows
StatisticsUpdate apply_statistics(const std::string& model, const Statistics& all);

/// Computes a hash of each row's features and target. Sampling and hold-out use it, so that they do not depend on the
/// partitioning.
std::vector<std::uint64_t> hash_rows(const DatasetView& rows);

/// Returns the bytes of the model from which all workers start. The result contains only the best candidate of the
/// filter selection.
/// \param model  bytes of a model file that was trained on some of the rows
/// \throws std::invalid_argument for models of the moment solver, bilinear models and models of single precision
std::string start_workers(const std::string& model);

/// Worker that holds no rows: the caller passes the rows of its partition for each request.
///
///     dyad::Worker worker(start);
///     worker.handle(request);
///     for (const auto& block : partition) worker.add_rows(block, dyad::hash_rows(block));
///     send_to_driver(worker.response().to_bytes());
///
/// One worker handles one request at a time and is not thread-safe.
class Worker {
 public:
  /// \param model    result of start_workers()
  /// \param threads  0: all cores
  explicit Worker(const std::string& model, int threads = 1);
  Worker(Worker&& other) noexcept;             ///< moves the worker
  Worker& operator=(Worker&& other) noexcept;  ///< moves the worker
  ~Worker();

  /// Begins a request of the driver and clears the sums.
  /// \throws DataError if the bytes are not a request
  void handle(const std::string& request);
  /// Adds rows to the sums of the current request.
  /// \param rows    rows with targets
  /// \param hashes  result of hash_rows() for these rows
  /// \throws DataError for invalid rows, std::invalid_argument unless there is one hash per row
  void add_rows(const DatasetView& rows, std::span<const std::uint64_t> hashes);
  /// Returns the sums over the rows of the current request.
  [[nodiscard]] Statistics response() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Progress of train_distributed().
struct DistributedProgress {
  std::string level;     ///< "one pass", or the ridge of Gauss-Newton
  double share = 1;      ///< one pass: share of the rows read so far
  double loss = -1;      ///< rmse in the units of the target, or logloss, of rows before they were learned; -1: unknown
  double held_out = -1;  ///< loss of held-out rows; -1: unknown
};

/// Options of train_distributed().
struct DistributedOptions {
  Solver solver = Solver::automatic;  ///< kalman: one pass; newton: Gauss-Newton; automatic: both in this order
  double trained_share = 0;           ///< share of the rows, with the smallest hashes, on which the model was trained
  Index max_data_passes = 100;        ///< limit for Gauss-Newton; the final fit has half of it, and at least 10
  std::function<Statistics(const std::string& request)> send;  ///< returns the sum of all workers' responses
  std::function<void(const DistributedProgress&)> progress;    ///< called after each iteration
};

/// Result of train_distributed().
struct DistributedSummary {
  std::string model;       ///< bytes of the model file
  std::string origin;      ///< one line: how the model was estimated
  Index requests = 0;      ///< number of requests
  Index rows = 0;          ///< number of rows
  double one_pass = -1;    ///< held-out loss after one pass, as in DistributedProgress; -1: unknown
  double multi_pass = -1;  ///< held-out loss after Gauss-Newton; -1: unknown
};

/// Trains on the rows of all workers. The first pass omits the rows on which the model was trained (`trained_share`).
/// \param model    result of start_workers()
/// \param options  solver and transport
/// \throws std::invalid_argument for invalid options, and everything that `DistributedOptions::send` throws
DistributedSummary train_distributed(const std::string& model, const DistributedOptions& options);

}  // namespace dyad
