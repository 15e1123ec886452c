#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/prior_groups.h"
#include "data/row_cache.h"
#include "model/sampled_posterior.h"
#include "training/multi_pass/multi_pass_solver.h"
#include "training/one_pass/stream_learner.h"

/// \file
/// This folder implements multi-pass training: iterative solvers over the cached rows of the first pass
/// (MultiPassSolver), folds of held-out rows (HeldOutFolds), the selection of the regularization level on them
/// (EarlyStopping, select_level), the average of samples (fit_by_sampling) and the conversion of the fit to a filter
/// (filter_from_fit).

namespace dyad {

/// Progress after a step of a MultiPassSolver.
struct MultiPassStep {
  std::string level;                                           ///< name of the level; "one pass" for the start
  double objective = 0;                                        ///< per row, minimized by the solver
  double held_out = std::numeric_limits<double>::quiet_NaN();  ///< mean held-out loss; NaN within a level
  bool is_refit = false;  ///< whether the step belongs to the fit to all rows, after the level was selected
};

/// Options of train_multi_pass().
struct MultiPassOptions {
  Solver solver = Solver::newton;  ///< newton, variational or sampling
  std::optional<Index> levels;     ///< fixed number of levels; null: selected on held-out rows
  std::optional<Index> samples;    ///< sampling: fixed number of samples; null: determined on held-out rows
  PriorGroups groups;              ///< sampling: prior groups of the features
  bool discovers_groups = false;   ///< sampling: find prior groups by co-occurrence instead
  /// newton: row weights act as exact repetition counts, and the order of the rows has no effect. Fits start from the
  /// moments of the rows instead of the first pass.
  bool has_exact_weights = false;
  /// Whether the result may have no filter because one pass has the smaller held-out loss, or because the work limit is
  /// exceeded.
  bool can_select_one_pass = true;
  std::uint64_t seed = 1;
  std::function<double(double target, double prediction)> loss;  ///< of a row, for the selection of the level
  std::function<void(const MultiPassStep&)> progress;            ///< null: no reports
  std::function<bool()> interrupted;                             ///< called between steps; true ends the training
};

/// Result of train_multi_pass().
template <typename Scalar>
struct MultiPassResult {
  /// Null if one pass has the smaller held-out loss, if there are too few rows, if the work limit is exceeded, if the
  /// fit is not finite, or after an interruption.
  std::optional<KalmanFilter<Scalar>> filter;
  std::optional<SampledPosterior> sampled;  ///< sampling: posterior of the model of the filter
  Index levels = 0;                         ///< number of levels (sampling: sweeps) of the fit; 0: one pass
  std::string level;                        ///< name of the last level
  double one_pass = 0;                      ///< mean held-out loss of one pass; valid if held_out_rows > 0
  double multi_pass = 0;                    ///< mean held-out loss at the selected level; valid if held_out_rows > 0
  Index held_out_rows = 0;                  ///< number of rows of these losses
  std::vector<std::uint8_t> fold_of{};      ///< the fold that holds out each cached row, if it is less than `folds`
  Index folds = 0;                          ///< 0: no rows were held out
  /// Classification: held-out log-likelihood of the best level (one pass included) minus that of the best constant, in
  /// nats. Null if no rows were held out.
  std::optional<double> gain_over_constant;
  Index row_reads = 0;  ///< number of rows read, summed over all passes and folds
  bool interrupted = false;
  bool exceeds_work_limit = false;  ///< the work limit allows too few passes, so that training was not started
};

/// Multi-pass training on the cached rows of the first pass of `learner`.
///
/// Rows are divided into folds (HeldOutFolds). Each fold trains on its rows level by level, starting from one pass
/// over them (with exact weights: from moments), and the level with the smallest held-out loss is fitted to all rows.
/// `validation`, unless null, replaces the held-out rows: all cached rows are used for training, and the fit at the
/// selected level is the result. Measurements (models without linear term) that a fit reproduces up to rounding need no
/// held-out rows. With fewer than 10 rows (unless `has_exact_weights`), or beyond the work limit, the result has no
/// filter.
///
/// The values of `rows` and `validation` are scaled during the call and restored up to rounding, also if an exception
/// is thrown.
template <typename Scalar>
MultiPassResult<Scalar> train_multi_pass(const StreamLearner<Scalar>& learner, RowCache<Scalar>& rows,
                                         RowCache<Scalar>* validation, const MultiPassOptions& options,
                                         ThreadPool& pool);

}  // namespace dyad
