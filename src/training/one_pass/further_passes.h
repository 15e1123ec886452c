#pragma once

#include <functional>
#include <optional>

#include "training/one_pass/stream_learner.h"

namespace dyad {

/// Options of learn_shuffled() and train_further_passes().
template <typename Scalar>
struct FurtherPassesOptions {
  Index max_passes = 1;  ///< including the first pass
  /// learn_shuffled(): rank for these options and first rows; null: the rank of the options.
  std::function<Index(const StreamOptions&, const Rows<Scalar>&)> select_rank;
  std::uint64_t seed = 1;
  std::function<double(double target, double predictor)> loss;  ///< of a row
  std::function<void(Index pass, double held_out)> progress;    ///< after each pass; null: no reports
  std::function<bool()> interrupted;                            ///< polled between blocks; null: never
};

/// Result of learn_shuffled().
template <typename Scalar>
struct ShuffledPass {
  KalmanFilter<Scalar> filter;
  double loss = 0;  ///< mean loss of the predictions before the rows were learned, without the first tenth of the rows
};

/// One pass over the rows in random order by a new learner with the options of `learner`.
template <typename Scalar>
ShuffledPass<Scalar> learn_shuffled(const StreamLearner<Scalar>& learner, const Rows<Scalar>& rows,
                                    const FurtherPassesOptions<Scalar>& options, ThreadPool& pool);

/// Result of train_further_passes().
template <typename Scalar>
struct FurtherPassesResult {
  std::optional<KalmanFilter<Scalar>> filter;  ///< null: the first pass has the smallest held-out loss
  Index passes = 1;                            ///< including the first pass
  double one_pass = 0;                         ///< held-out loss of the first pass
  double best = 0;                             ///< held-out loss of the selected number of passes
  Index held_out_rows = 0;
  Index row_reads = 0;
  bool interrupted = false;
};

/// Further passes of a filter with a hierarchical prior, which has learned `rows`, by stochastic expectation
/// propagation (KalmanFilter::relearn) over the rows in random order. The number of passes is that with the smallest
/// loss of a tenth of the rows, which a filter that learns the other rows from the start does not use. It is at most
/// `max_passes`.
template <typename Scalar>
FurtherPassesResult<Scalar> train_further_passes(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows,
                                                 const FurtherPassesOptions<Scalar>& options);

}  // namespace dyad
