#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "refine/refiner.h"
#include "rows/kept_rows.h"
#include "stream/stream_learner.h"

namespace dyad {

/// After a step of a refiner.
struct RefineStep {
  std::string level;
  double objective = 0;                                        ///< per row
  double held_out = std::numeric_limits<double>::quiet_NaN();  ///< mean loss; NaN: on the way to a level, or unknown
  bool is_refit = false;                                       ///< on all rows, once the level is chosen
};

struct RefineOptions {
  Solver solver = Solver::newton;  ///< newton or variational
  std::optional<Index> levels;     ///< exactly so many, whatever held-out rows would say
  bool exact_weights = false;      ///< newton: a row counts exactly as often as its weight says, wherever it stands
  bool may_decline = true;         ///< where one pass is better on held-out rows, or where it would take too long
  std::uint64_t seed = 1;
  std::function<double(double target, double prediction)> loss;  ///< of a row, for the choice
  std::function<void(const RefineStep&)> progress;
  std::function<bool()> interrupted;
};

template <typename Scalar>
struct RefineResult {
  std::optional<KalmanFilter<Scalar>> filter;  ///< nothing: one pass is as good, or there were too few rows
  Index levels = 0;
  std::string level;    ///< the name of the last one
  double one_pass = 0;  ///< mean loss on held-out rows, where there were any
  double refined = 0;   ///< likewise
  Index held_out_rows = 0;
  /// Classes: sum of the held-out losses of the best constant less those of the best level, one pass included. Nothing
  /// where no rows were held out.
  std::optional<double> gain_over_constant;
  Index row_reads = 0;
  bool interrupted = false;
  bool takes_too_long = false;  ///< so that it was not begun
};

/// Makes the most of rows that can be read again, from `learner`, which has learned them once: a share of the rows is
/// held out of another pass and of the levels behind it, and says which level is best; that level is then reached with
/// all rows. Few rows are held out in turn; fewer than ten are left alone. With `validation` those rows say it, and all
/// others count from the start.
template <typename Scalar>
RefineResult<Scalar> refine(const StreamLearner<Scalar>& learner, KeptRows<Scalar>& rows, KeptRows<Scalar>* validation,
                            const RefineOptions& options, Workers& workers);

}  // namespace dyad
