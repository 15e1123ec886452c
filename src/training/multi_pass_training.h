#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "training/cached_rows/fit_status.h"
#include "training/multi_pass/train_multi_pass.h"
#include "training/state/train_settings.h"
#include "training/validation_rows.h"

namespace dyad {

/// Multi-pass training: caches the rows of the first pass, in memory or on disk, and trains on them afterwards with
/// Gauss-Newton or variational sweeps. Does not own the options and the settings; the caller keeps them alive. Not
/// thread-safe.
template <typename Scalar>
class MultiPassTraining {
 public:
  MultiPassTraining(const TrainOptions& options, const TrainSettings& settings);

  /// Warning that states why multi-pass training is skipped. Empty if it is not skipped, or if the options exclude it.
  [[nodiscard]] const std::string& skip_reason() const { return skip_reason_; }
  /// Whether rows are cached.
  [[nodiscard]] bool is_caching() const { return cache_.has_value(); }
  /// Whether train_multi_pass() follows the first pass. The rows of the solver kalman are cached for further passes of
  /// the filter and as a remedy for their order.
  [[nodiscard]] bool follows() const { return is_caching() && settings_.solver != Solver::kalman; }
  /// The cached rows; null if they are not cached. Do not cache rows afterwards.
  [[nodiscard]] std::optional<Rows<Scalar>> cached_rows(const ModelShape& shape);
  /// One-line description of the passes after the first one; empty if no rows are cached.
  [[nodiscard]] std::string plan() const;

  /// Appends a block to the cache. Disables multi-pass training if the rows exceed the memory limit, cannot be written
  /// to disk, or are dense with different numbers of features.
  void cache_rows(const RowBlock<Scalar>& block);

  /// Whether row weights act as exact repetition counts and row order has no effect: for dense in-memory rows that fit
  /// in one block, except measurements. The result of the first pass is not used in that case.
  [[nodiscard]] bool treats_weights_as_counts(const FeatureMap& map) const;

  /// Trains on the cached rows. The regularization level is selected on the validation rows if there are any, otherwise
  /// on held-out rows. `hooks`: only `progress` and `interrupted` are used.
  MultiPassResult<Scalar> train_multi_pass(const StreamLearner<Scalar>& learner, FeatureMap& map,
                                           ValidationRows<Scalar>& validation, const MultiPassOptions& hooks,
                                           ThreadPool& pool);

  /// Diagnosis of a fit of measurements, or of an exact fit of dense rows of a bilinear model; null for other models,
  /// and if no rows are cached. Standard errors are in the units of the encoded features and targets.
  [[nodiscard]] std::optional<FitDiagnosis> diagnose(const KalmanFilter<Scalar>& filter,
                                                     const std::function<bool()>& interrupted, ThreadPool& pool);

  /// The solver that the last train_multi_pass() has chosen.
  [[nodiscard]] Solver solver() const { return solver_; }

 private:
  void disable(std::string reason);
  void borrow_rows();
  [[nodiscard]] std::optional<Solver> choose_solver(const ModelShape& shape);

  const TrainOptions& options_;
  const TrainSettings& settings_;
  std::optional<RowCache<Scalar>> cache_;  ///< null if multi-pass training is excluded or disabled
  Index dense_dim_ = 0;                    ///< number of features of dense rows
  bool is_one_block_ = false;              ///< all cached rows come from one block
  std::string skip_reason_;
  Solver solver_ = Solver::newton;
};

}  // namespace dyad
