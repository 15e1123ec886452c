#include "training/one_pass/further_passes.h"

#include <algorithm>
#include <cmath>

#include "data/row_hash.h"
#include "data/shuffled_rows.h"

namespace dyad {
namespace {

/// One of this number of rows is held out. Sensitivity: docs/constants.md.
constexpr std::uint64_t held_out_divisor = 10;
/// Minimum number of held-out rows for the selection of the number of passes. Sensitivity: docs/constants.md.
constexpr Index min_held_out_rows = 20;
constexpr Index block_rows = 4096;

/// Random stream of the order of a pass.
std::uint64_t order_stream(Index pass) { return start_stream - 3 - static_cast<std::uint64_t>(pass); }

/// Equal rows have equal hashes, so that they are held out together.
template <typename Scalar>
std::uint64_t row_hash(const Rows<Scalar>& rows, Index i) {
  RowHash hash;
  hash.add(RowHash::target_column, static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]));
  rows.for_each_entry(i, [&](Index j, Scalar x) { hash.add(static_cast<std::uint64_t>(j), static_cast<double>(x)); });
  return hash.value();
}

/// Passes of a filter over selected rows in random order.
template <typename Scalar>
class Passes {
 public:
  Passes(KalmanFilter<Scalar> filter, const Rows<Scalar>& rows, std::vector<Index> selected,
         const FurtherPassesOptions<Scalar>& options)
      : filter_(std::move(filter)),
        rows_(rows),
        selected_(std::move(selected)),
        options_(options),
        feature_rows_(static_cast<std::size_t>(rows.dim())) {
    if (selected_.empty())
      for (Index i = 0; i < rows.count(); ++i) count_features(i);
    for (const Index i : selected_) count_features(i);
  }

  /// The first pass of a filter without data.
  bool learn() {
    return for_each_block(1, [&](const Rows<Scalar>& block) { filter_.learn(block, predictions_); });
  }
  /// Pass `pass` > 1.
  bool relearn(Index pass) {
    if (pass == 2) filter_.start_further_passes();
    const auto count = static_cast<double>(selected_.empty() ? rows_.count() : static_cast<Index>(selected_.size()));
    const bool is_complete =
        for_each_block(pass, [&](const Rows<Scalar>& block) { filter_.relearn(block, feature_rows_, count); });
    filter_.update_prior();
    return is_complete;
  }

  [[nodiscard]] KalmanFilter<Scalar>& filter() { return filter_; }
  [[nodiscard]] Index row_reads() const { return row_reads_; }

 private:
  void count_features(Index i) {
    if (!(rows_.weight(i) > 0)) return;
    rows_.for_each_entry(i, [&](Index j, Scalar x) { feature_rows_[static_cast<std::size_t>(j)] += x != 0 ? 1 : 0; });
  }
  /// Returns false after an interruption.
  template <typename Visit>
  bool for_each_block(Index pass, Visit&& visit) {
    ShuffledRows<Scalar> shuffled(rows_, selected_, options_.seed, order_stream(pass));
    while (true) {
      const Rows<Scalar> block = shuffled.next(block_rows);
      if (block.count() == 0) return true;
      if (options_.interrupted && options_.interrupted()) return false;
      predictions_.resize(static_cast<std::size_t>(block.count()));
      visit(block);
      row_reads_ += block.count();
    }
  }

  KalmanFilter<Scalar> filter_;
  const Rows<Scalar>& rows_;
  std::vector<Index> selected_;  ///< empty: all rows
  const FurtherPassesOptions<Scalar>& options_;
  std::vector<float> feature_rows_;  ///< number of selected rows with each feature
  std::vector<Scalar> predictions_;
  Index row_reads_ = 0;
};

/// Weighted mean loss of the averaged predictions of selected rows.
template <typename Scalar>
double mean_loss(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows, const std::vector<Index>& selected,
                 const FurtherPassesOptions<Scalar>& options) {
  const Likelihood& likelihood = *filter.options().likelihood;
  double sum = 0;
  double total = 0;
  for (const Index i : selected) {
    Scalar mean = 0;
    Scalar variance = 0;
    filter.predict(rows.slice(i, 1), {&mean, 1}, {&variance, 1});
    const double f = likelihood.posterior_predictor(static_cast<double>(mean), static_cast<double>(variance));
    const auto weight = static_cast<double>(rows.weight(i));
    sum += weight * options.loss(static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]), f);
    total += weight;
  }
  return total > 0 ? sum / total : 0;
}

}  // namespace

template <typename Scalar>
ShuffledPass<Scalar> learn_shuffled(const StreamLearner<Scalar>& learner, const Rows<Scalar>& rows,
                                    const FurtherPassesOptions<Scalar>& options, ThreadPool& pool) {
  StreamOptions stream = learner.options();
  stream.kalman.shape.dim = rows.dim();
  stream.feature_groups = learner.filter().feature_groups();
  if (options.select_rank) {
    ShuffledRows<Scalar> shuffled(rows, {}, options.seed, order_stream(1));
    stream.kalman.shape.rank = options.select_rank(stream, shuffled.next(block_rows));
  }
  StreamLearner<Scalar> fresh(std::move(stream), pool);
  ShuffledRows<Scalar> shuffled(rows, {}, options.seed, order_stream(1));
  std::vector<Scalar> predictions;
  double sum = 0;
  double total = 0;
  Index done = 0;
  while (true) {
    const Rows<Scalar> block = shuffled.next(block_rows);
    if (block.count() == 0 || (options.interrupted && options.interrupted())) break;
    predictions.resize(static_cast<std::size_t>(block.count()));
    fresh.learn(block, predictions);
    for (Index i = 0; i < block.count(); ++i, ++done) {
      if (done < rows.count() / 10) continue;
      const auto at = static_cast<std::size_t>(i);
      const auto weight = static_cast<double>(block.weight(i));
      sum += weight * options.loss(static_cast<double>(block.targets()[at]), static_cast<double>(predictions[at]));
      total += weight;
    }
  }
  fresh.finish_buffered_start();
  return {fresh.filter(), total > 0 ? sum / total : 0};
}

template <typename Scalar>
FurtherPassesResult<Scalar> train_further_passes(const KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows,
                                                 const FurtherPassesOptions<Scalar>& options) {
  FurtherPassesResult<Scalar> result;
  std::vector<Index> training;
  std::vector<Index> held_out;
  for (Index i = 0; i < rows.count(); ++i)
    (row_hash(rows, i) % held_out_divisor == 0 ? held_out : training).push_back(i);
  result.held_out_rows = static_cast<Index>(held_out.size());
  if (result.held_out_rows < min_held_out_rows || training.empty()) return result;
  {
    KalmanFilter<Scalar> start = filter.without_data(filter.noise_variance());
    const std::vector<double> scales = filter.scales();
    for (Index j = 0; j < rows.dim(); ++j)
      if (const double scale = scales[static_cast<std::size_t>(j)]; scale > 0) start.add_feature(j, scale);
    Passes<Scalar> passes(std::move(start), rows, std::move(training), options);
    result.interrupted = !passes.learn();
    if (result.interrupted) return result;
    result.one_pass = result.best = mean_loss(passes.filter(), rows, held_out, options);
    if (options.progress) options.progress(1, result.one_pass);
    for (Index pass = 2; pass <= options.max_passes; ++pass) {
      result.interrupted = !passes.relearn(pass);
      if (result.interrupted) return result;
      const double loss = mean_loss(passes.filter(), rows, held_out, options);
      if (options.progress) options.progress(pass, loss);
      if (!(loss < result.best)) break;
      result.best = loss;
      result.passes = pass;
    }
    result.row_reads += passes.row_reads();
  }
  if (result.passes == 1) return result;
  Passes<Scalar> passes(filter, rows, {}, options);
  for (Index pass = 2; pass <= result.passes; ++pass) {
    result.interrupted = !passes.relearn(pass);
    if (result.interrupted) return result;
  }
  result.row_reads += passes.row_reads();
  if (passes.filter().is_finite()) result.filter.emplace(std::move(passes.filter()));
  return result;
}

#define DYAD_INSTANTIATE(Scalar)                                                                              \
  template ShuffledPass<Scalar> learn_shuffled(const StreamLearner<Scalar>&, const Rows<Scalar>&,             \
                                               const FurtherPassesOptions<Scalar>&, ThreadPool&);             \
  template FurtherPassesResult<Scalar> train_further_passes(const KalmanFilter<Scalar>&, const Rows<Scalar>&, \
                                                            const FurtherPassesOptions<Scalar>&);
DYAD_INSTANTIATE(float)
DYAD_INSTANTIATE(double)
#undef DYAD_INSTANTIATE

}  // namespace dyad
