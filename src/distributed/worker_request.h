#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "distributed/question.h"
#include "encoding/target.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// What a worker needs to handle requests. Refers to objects of the worker, which outlive its requests.
struct WorkerContext {
  const Target& target;                ///< of the model
  const KalmanFilter<double>& filter;  ///< of the model
  ThreadPool& pool;
};

/// A request of the driver, handled by one worker: construct, read_body(), add() for each block of rows, write(). The
/// responses of all workers add up. There is one derived class per kind of request. Not thread-safe.
class WorkerRequest {
 public:
  /// How a request uses a row.
  enum RowUse : std::uint8_t { unused, used, held_out };

  virtual ~WorkerRequest() = default;

  /// Reads the part of the request behind `Question`.
  virtual void read_body(Archive&) {}
  /// Whether held-out rows are needed, to compute their losses.
  [[nodiscard]] virtual bool needs_held_out() const { return false; }
  /// May change the block. `uses`: one RowUse per row, none of them `unused`.
  virtual void add(RowBlock<double>& block, std::span<const std::uint8_t> uses) = 0;
  /// Writes the sums over all rows.
  virtual void write(Archive& response) = 0;

  [[nodiscard]] const TargetSums& losses() const { return losses_; }
  [[nodiscard]] double least_target() const { return least_target_; }
  [[nodiscard]] double most_target() const { return most_target_; }

 protected:
  static constexpr double max_loss = 1e100;  ///< replaces losses that are larger or not finite

  /// The range of targets is removed if the rows of some worker lie outside of it.
  WorkerRequest(const WorkerContext& context, const Question& question);

  void add_losses(const Rows<double>& rows, std::span<const double> predictions);

  WorkerContext context_;
  Question question_;
  Target target_;
  TargetSums losses_;  ///< weight, losses and squared residuals, of rows before they were learned, or held out
  double least_target_ = Target().least_seen;
  double most_target_ = Target().most_seen;
};

std::unique_ptr<WorkerRequest> make_worker_request(const WorkerContext& context, const Question& question);

}  // namespace dyad
