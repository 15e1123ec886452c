#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <dyad/moment.h>

#include "solvers/moment/one_scan_solver.h"

namespace dyad {

/// Default number of rows of the first batch: 6 rank dim, at most 4096. If that is too small, the line search shortens
/// the step and the batches grow.
Index default_batch_rows(Index rank, Index dim);

/// One-scan solver for correlated features. Each step is line-searched on rows that were not used to compute it.
///
/// Predictions are linear in (b, w, M). On the line from the model (residuals r) to the proposed model (residuals r'),
/// the squared error is smallest at the step fraction t = sum r (r - r') / sum (r - r')^2. For independent features t
/// is close to 1, which is the update of the paper. A short step shows that the batch is too small or that features are
/// correlated, and the batch size doubles. If the model is worse than the running mean of the targets, training
/// restarts from the mean. Does not own the pool; the caller keeps it alive. Not thread-safe.
template <typename Scalar>
class MomentLearner {
 public:
  /// Targets should have a mean near 0 and a variance near 1. `first_batch_rows`: number of rows of the first batch;
  /// empty: default_batch_rows().
  MomentLearner(const MomentOptions& options, std::optional<Index> first_batch_rows, ThreadPool& pool);

  /// Learns the rows in sequence. Writes to `residuals` y - f(x) of each row, with the model before the row is learned.
  void learn(const Rows<Scalar>& rows, std::span<Scalar> residuals);

  /// Adds features at the end of each side.
  void grow(Index dim, Index left_dim);

  /// The current model, or the mean of the targets if that is better (see is_constant()).
  [[nodiscard]] Model<Scalar> model() const;

  [[nodiscard]] double target_mean() const { return target_mean_; }  ///< weighted mean over all rows so far
  /// Whether a proposed step is being line-searched.
  [[nodiscard]] bool is_line_search() const { return proposal_.has_value(); }
  [[nodiscard]] Index steps_tried() const { return steps_tried_; }
  [[nodiscard]] Index steps_taken() const { return steps_taken_; }
  /// Whether model() is the mean of the targets.
  [[nodiscard]] bool is_constant() const { return steps_taken_ == 0 || is_worse_than_constant(); }
  [[nodiscard]] Index rows_until_step() const;  ///< rows missing from the batch; 0 during a line search
  /// Rows after which the model can change: those missing from the batch or from the line search.
  [[nodiscard]] Index rows_until_decision() const {
    return std::max<Index>(1, proposal_ ? line_search_rows() - line_search_.rows : batch_rows() - rows_in_batch_);
  }

  /// Saving first discards sums that have overflowed, because archives contain finite numbers only.
  void archive(Archive& archive);

  /// Distributed training, in place of learn(). Each worker calls start_worker_sums(), which discards the current
  /// batch, then accumulate() for its rows, and saves its sums with archive_worker_sums(). The sums refer to the
  /// current batch or line search. Loading the sum over all workers applies them in one step.
  void start_worker_sums();
  void accumulate(const Rows<Scalar>& rows);
  /// Saving: sums that are additive over workers. Loading: applies the sum over all workers.
  void archive_worker_sums(Archive& archive);

 private:
  /// Weighted sums over the rows of a line search, with residuals r of the model and r' of the proposed model.
  struct LineSearch {
    Index rows = 0;
    double before = 0;  ///< sum r^2
    double cross = 0;   ///< sum r r'
    double after = 0;   ///< sum r'^2

    void archive(Archive& archive);
  };
  /// Weighted squared errors since the last change of the model, on rows before they were learned.
  struct ConstantComparison {
    Index rows = 0;
    double squares = 0;              ///< of the model
    double squares_of_constant = 0;  ///< of the running mean of the targets
  };

  [[nodiscard]] Index batch_rows() const;
  [[nodiscard]] Index line_search_rows() const;
  [[nodiscard]] bool is_worse_than_constant() const;
  void evaluate_proposal(const Rows<Scalar>& rows, std::span<Scalar> residuals);
  void update_comparison(const Rows<Scalar>& rows, std::span<const Scalar> residuals);
  std::pair<double, double> add_to_comparison(const Rows<Scalar>& rows, std::span<const Scalar> residuals,
                                              std::size_t i);
  void propose();
  void finish_line_search();
  void accept(const Model<Scalar>& model);
  void reset_to_constant();
  void discard_overflowed_sums();

  MomentOptions options_;
  std::optional<Index> first_batch_rows_;  ///< rows of the first batch; empty: default_batch_rows()
  double batch_growth_ = 1;                ///< factor of the size of the first batch; doubles after short steps
  OneScan<Scalar> one_scan_;
  Index rows_in_batch_ = 0;
  std::optional<Model<Scalar>> proposal_;  ///< model that is being line-searched
  bool proposal_is_partial_ = false;       ///< the proposal is a shortened step, which is accepted or rejected
  LineSearch line_search_;
  ConstantComparison comparison_;
  double target_weight_ = 0;      ///< sum of the row weights
  double target_mean_ = 0;        ///< weighted mean of the targets
  double worker_weight_ = 0;      ///< sum of the worker's row weights
  double worker_target_sum_ = 0;  ///< weighted sum of the worker's targets
  Index steps_tried_ = 0;
  Index steps_taken_ = 0;  ///< since the last restart from the mean
};

}  // namespace dyad
