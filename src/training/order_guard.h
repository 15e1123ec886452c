#pragma once

#include <optional>
#include <span>

#include <dyad/train.h>

#include "training/one_pass/further_passes.h"
#include "training/one_pass/row_sample.h"

namespace dyad {

/// Guard of the one-pass filter against row orders in which later rows replace what was learned from earlier ones, such
/// as rows sorted by the target or by a category (RowSample::order_hurts). The remedy is a filter that learns rows in
/// random order: all rows if they are cached or in the sample, otherwise the sample. If `tries_similar_rows`, this is
/// also tried for cached rows in which neighbors are similar (RowSample::has_similar_neighbors). Not thread-safe.
template <typename Scalar>
class OrderGuard {
 public:
  struct Remedy {
    OrderRemedy kind = OrderRemedy::none;
    std::optional<KalmanFilter<Scalar>> filter;  ///< null: the filter of the first pass is kept
    Index row_reads = 0;
  };

  explicit OrderGuard(std::uint64_t seed) : sample_(seed) {}

  /// Adds rows with their linear predictors before they were learned.
  void add(const Rows<Scalar>& rows, std::span<const double> predictors, const Likelihood& likelihood) {
    sample_.add(rows, predictors, likelihood);
  }

  /// `cached`: all rows; null if they are not cached. Call it once, after the first pass.
  Remedy remedy(const StreamLearner<Scalar>& learner, const Rows<Scalar>* cached, bool tries_similar_rows,
                const FurtherPassesOptions<Scalar>& options, ThreadPool& pool) {
    Remedy result;
    const KalmanFilter<Scalar>& filter = learner.filter();
    const bool hurts = sample_.order_hurts(filter);
    const bool has_all_rows = cached != nullptr || sample_.has_all_rows();
    if (!hurts && !(tries_similar_rows && cached != nullptr && sample_.has_similar_neighbors())) return result;
    const Rows<Scalar> rows = cached != nullptr ? *cached : sample_.view(filter.options().shape.dim);
    ShuffledPass<Scalar> pass = learn_shuffled(learner, rows, options, pool);
    result.row_reads = rows.count();
    if (options.interrupted && options.interrupted()) return result;
    // Both filters have learned the sample if the shuffled rows are all rows. Otherwise, the comparison of the loss
    // before learning with that after learning favors the filter of the first pass.
    const double loss = has_all_rows ? sample_.loss(pass.filter) : pass.loss;
    const bool is_better = pass.filter.is_finite() && loss < sample_.loss(filter);
    if (is_better)
      result.kind = has_all_rows ? OrderRemedy::shuffled : OrderRemedy::sample;
    else if (hurts)
      result.kind = OrderRemedy::warning;
    if (is_better) result.filter.emplace(std::move(pass.filter));
    return result;
  }

 private:
  RowSample<Scalar> sample_;
};

}  // namespace dyad
