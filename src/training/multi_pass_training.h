#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "data/row_block.h"
#include "encoding/feature_map.h"
#include "training/multi_pass/refine.h"
#include "training/state/train_settings.h"
#include "training/validation_rows.h"

namespace dyad {

/// Multi-pass training: caches the rows of the first pass, in memory or on disk, and trains on them afterwards. Does
/// not own the options and the settings; the caller keeps them alive. Not thread-safe.
template <typename Scalar>
class MultiPassTraining {
 public:
  MultiPassTraining(const TrainOptions& options, const TrainSettings& settings);

  /// Why rows are not read again, as a warning; empty if they are, or if the options exclude it.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }
  [[nodiscard]] bool is_keeping() const { return kept_.has_value(); }
  /// One line; empty if no rows are cached.
  [[nodiscard]] std::string plan() const;

  void keep(const RowBlock<Scalar>& block);

  /// Whether weights act as exact repetition counts and the order of the rows has no effect: for dense rows in memory
  /// that fit in one block. The result of the first pass is not used then.
  [[nodiscard]] bool counts_exactly(const FeatureMap& map) const;

  /// Trains on the cached rows. Validation rows, if there are any, choose the regularization level.
  RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, FeatureMap& map, ValidationRows<Scalar>& validation,
                              const RefineOptions& hooks, ThreadPool& pool);

  /// The solver that refine() has chosen.
  [[nodiscard]] Solver solver() const { return solver_; }

 private:
  void give_up(std::string why);
  void borrow_rows();
  [[nodiscard]] std::optional<Solver> chosen_solver(const ModelShape& shape);

  const TrainOptions& options_;
  const TrainSettings& settings_;
  std::optional<RowCache<Scalar>> kept_;
  Index dense_dim_ = 0;
  bool is_one_block_ = false;
  std::string why_not_;
  Solver solver_ = Solver::newton;
};

}  // namespace dyad
