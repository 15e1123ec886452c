#pragma once

#include <optional>
#include <span>

#include <dyad/moment.h>

#include "base/archive.h"
#include "base/thread_pool.h"
#include "solvers/moment/change_estimator.h"
#include "solvers/moment/moment_sums.h"

namespace dyad {

/// Steps of the one-scan update, for OneScanSolver and MomentLearner. With Y = (M + dM) U, the new M is the best rank-k
/// approximation of U Y' + Y U' - U (U'Y) U' (bilinear: see compute_step()). Each row is read once. Memory:
/// O(rank * dim) per thread.
/// Does not own the pool; the caller keeps it alive. Not thread-safe.
template <typename Scalar>
class OneScan {
 public:
  /// `options.threads` has no effect. `start`: factors have orthonormal columns.
  OneScan(const MomentOptions& options, Model<Scalar> start, ThreadPool& pool);

  [[nodiscard]] const Model<Scalar>& model() const { return model_; }
  [[nodiscard]] Moments moments() const { return estimator_.moments(); }
  /// Sum of the row weights of the current batch.
  [[nodiscard]] double batch_weight() const { return batch_ ? batch_->weight() : 0; }

  /// Adds rows to the batch. Writes y - f(x) to `residuals` if that is not empty. If the rows are not valid, it throws
  /// std::invalid_argument and discards the batch.
  void observe(const Rows<Scalar>& rows, std::span<Scalar> residuals = {});

  /// Ends the batch and writes the updated model to `next`. If the update is not finite, `next` does not change.
  BatchReport end_batch(Model<Scalar>& next);

  /// Sums of one batch.
  struct Sums {
    MomentSums<Scalar> residual_sums;
    FeatureMoments feature_moments;

    void archive(Archive& archive);
  };
  /// Returns the sums of the current batch and starts a new batch.
  [[nodiscard]] Sums take_batch_sums();
  /// Replaces the sums of the current batch.
  void restore_batch_sums(const Sums& sums);

  /// Sets a model of the same shape. The current batch must be empty.
  void set_model(Model<Scalar> model) { model_ = std::move(model); }

  /// Starts a new batch if the sums of the current one have overflowed. Returns whether they have.
  bool discard_overflowed_sums();

  void grow(const FeatureGrowth& growth);
  void archive(Archive& archive);

 private:
  MomentAccumulator<Scalar>& current_batch();
  [[nodiscard]] Model<Scalar> compute_next_model(const MomentSums<Scalar>& batch) const;
  [[nodiscard]] Model<double> compute_step(const Model<double>& model, const MomentSums<double>& sums) const;

  MomentOptions options_;
  ThreadPool& pool_;
  Model<Scalar> model_;
  ChangeEstimator estimator_;
  std::optional<MomentAccumulator<Scalar>> batch_;  ///< empty: no rows since the last update
};

/// Inserts zero parameters for new features.
template <typename Scalar>
void grow_model(Model<Scalar>& model, const FeatureGrowth& growth);

/// Saves or loads the parameters of a model. The shape of `model` must be set before loading.
template <typename Scalar>
void archive_model(Archive& archive, Model<Scalar>& model);

}  // namespace dyad
