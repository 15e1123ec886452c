#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "data/row_block.h"
#include "distributed/request.h"
#include "encoding/feature_map.h"
#include "solvers/kalman/filter.h"

namespace dyad {

/// Objects of a worker that its request handlers use. Does not own them; the worker keeps them alive.
struct WorkerContext {
  const FeatureMap& map;               ///< encoding of the model
  const KalmanFilter<double>* filter;  ///< filter of the model; null: ANOVA model
  ThreadPool& pool;
};

/// Computes the response of one worker to a request: construction, read_body(), add() for each block of rows, write().
/// Responses are sums over rows, so that the responses of all workers add up. There is one derived class for each
/// Request::Type. Not thread-safe.
class RequestHandler {
 public:
  /// How a request uses a row. `used`: in the sums. `held_out`: in the losses only.
  enum RowUse : std::uint8_t { unused, used, held_out };

  virtual ~RequestHandler() = default;

  /// Reads the body of the request, which follows the header `Request`.
  virtual void read_body(Archive&) {}
  /// Whether add() needs held-out rows, to compute their losses.
  [[nodiscard]] virtual bool needs_held_out() const { return false; }
  /// Adds the rows to the sums. May change the block. `uses`: one RowUse per row, none of them `unused`.
  virtual void add(RowBlock<double>& block, std::span<const std::uint8_t> uses) = 0;
  /// Writes the sums over all rows.
  virtual void write(Archive& response) = 0;

  /// Sums of weights, losses and squared residuals: of rows before they were learned, or of held-out rows.
  [[nodiscard]] const TargetSums& losses() const { return losses_; }
  [[nodiscard]] double min_target() const { return min_target_; }
  [[nodiscard]] double max_target() const { return max_target_; }

 protected:
  /// Upper limit of the loss of a row, which also replaces losses that are not finite. Weighted sums of such losses do
  /// not overflow, and they exceed all sums of regular losses.
  static constexpr double max_loss = 1e100;

  /// Removes the range of the target unless `Request::has_range`.
  RequestHandler(const WorkerContext& context, const Request& request);

  void add_losses(const Rows<double>& rows, std::span<const double> predictions);

  WorkerContext context_;
  Request request_;
  Target target_;
  TargetSums losses_;
  double min_target_ = Target().min_seen;
  double max_target_ = Target().max_seen;
};

/// Creates the handler of the type of the request.
std::unique_ptr<RequestHandler> make_request_handler(const WorkerContext& context, const Request& request);

}  // namespace dyad
