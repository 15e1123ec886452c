#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "data/row_cache.h"
#include "training/multi_pass/multi_pass_solver.h"
#include "training/one_pass/stream_learner.h"

namespace dyad {

/// Progress after a step of a MultiPassSolver.
struct RefineStep {
  std::string level;
  double objective = 0;                                        ///< per row
  double held_out = std::numeric_limits<double>::quiet_NaN();  ///< mean loss; NaN within a level
  bool is_refit = false;                                       ///< on all rows, after the level was selected
};

struct RefineOptions {
  Solver solver = Solver::newton;  ///< newton or variational
  std::optional<Index> levels;     ///< fixed number of levels; nothing: selected on held-out rows
  bool exact_weights = false;      ///< newton: weights act as exact repetition counts, and row order has no effect
  bool may_decline = true;  ///< returns no filter if one pass is better on held-out rows, or if it would take too long
  std::uint64_t seed = 1;
  std::function<double(double target, double prediction)> loss;  ///< of a row, for the selection of the level
  std::function<void(const RefineStep&)> progress;
  std::function<bool()> interrupted;
};

template <typename Scalar>
struct RefineResult {
  std::optional<KalmanFilter<Scalar>> filter;  ///< nothing: one pass is at least as good, or there are too few rows
  Index levels = 0;
  std::string level;    ///< name of the last one
  double one_pass = 0;  ///< mean loss on held-out rows, if there are any
  double refined = 0;   ///< the same at the selected level
  Index held_out_rows = 0;
  /// Classes: sum of the held-out losses of the best constant minus those of the best level, one pass included. Nothing
  /// if no rows were held out.
  std::optional<double> gain_over_constant;
  Index row_reads = 0;
  bool interrupted = false;
  bool takes_too_long = false;  ///< and was not started
};

/// Multi-pass training on cached rows, from `learner`, which has learned them in one pass. A share of the rows is held
/// out of another pass and of the levels after it. The level with the smallest held-out loss is then fitted to all
/// rows. Few rows are held out in turn (HeldOutFolds); with fewer than ten rows nothing is done. With `validation` the
/// level is selected on those rows, and the fit to all cached rows at that level is the result.
template <typename Scalar>
RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, RowCache<Scalar>& rows, RowCache<Scalar>* validation,
                            const RefineOptions& options, ThreadPool& pool);

}  // namespace dyad
