// Loss of one pass in which two filters learn alternating blocks of rows and are merged by their natural parameters,
// relative to one filter. Requires the data in the folder DYAD_DATA.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "real_data.h"
#include "solvers/kalman/filter.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_solver.h"

namespace dyad {
namespace {

constexpr Index rank = 8;
constexpr std::uint64_t seeds = 3;

/// One pass by one filter, or by two copies that each learn `block_rows` rows before they are merged. The prior is
/// updated between the blocks.
class MergedPass {
 public:
  /// `block_rows`: 0 for one filter.
  MergedPass(const FeatureMap& map, const RowBlock<double>& first, std::uint64_t seed, Index block_rows)
      : map_(map),
        block_rows_(block_rows),
        options_(options_for(map, first, seed)),
        filter_(start_filter(options_, first)),
        scales_(first.dim, options_.features_are_standardized) {
    scales_.adopt(filter_.scales());
  }

  void learn(const RowBlock<double>& block) {
    add_features(block);
    const Rows<double> rows = block.view();
    for (Index first = 0; first < rows.count();) {
      const Index count = std::min(rows.count() - first, block_rows_ > 0 ? 2 * block_rows_ : rows.count());
      const Rows<double> part = rows.slice(first, count);
      predictions_.resize(static_cast<std::size_t>(count));
      if (block_rows_ == 0)
        filter_.learn(part, predictions_);
      else
        learn_merged(part);
      for (std::size_t i = 0; i < predictions_.size(); ++i)
        loss_ += map_.target.score(part.targets()[i], predictions_[i]);
      rows_ += static_cast<double>(count);
      first += count;
    }
  }

  /// Mean loss of the predictions of rows before they were learned.
  [[nodiscard]] double loss() const { return likelihood_of(map_.target.task).metric(loss_ / rows_); }

 private:
  static StreamOptions options_for(const FeatureMap& map, const RowBlock<double>& first, std::uint64_t seed) {
    TrainSettings settings;
    settings.seed = seed;
    settings.diagonal = default_diagonal(map, first);
    settings.rank = rank;
    StreamOptions options = stream_options(TrainOptions(), settings, map);
    options.feature_groups = first.new_feature_groups;
    options.kalman.shape.dim = first.dim;
    return options;
  }

  static KalmanFilter<double> start_filter(const StreamOptions& options, const RowBlock<double>& first) {
    ThreadPool pool(1);
    StreamLearner<double> learner(options, pool);
    learner.start(first.view());
    return learner.filter();
  }

  void add_features(const RowBlock<double>& block) {
    const Index before = filter_.options().shape.dim;
    if (block.dim > before) {
      scales_.grow(before, block.dim - before, 0);
      filter_.grow(block.dim, 0);
      Index j = block.dim - static_cast<Index>(block.new_feature_groups.size());
      for (const std::int32_t group : block.new_feature_groups) {
        if (j >= before) filter_.set_group(j, group);
        ++j;
      }
    }
    for (const auto& [j, scale] : scales_.add_new_features(block.view())) filter_.add_feature(j, scale);
  }

  void learn_merged(const Rows<double>& rows) {
    const NaturalParameters before = filter_.natural_parameters();
    NaturalParameters combined = before;
    double noise = 0;
    const Index half = (rows.count() + 1) / 2;
    for (const auto& [first, count] : {std::pair(Index{0}, half), std::pair(half, rows.count() - half)}) {
      KalmanFilter<double> copy = filter_;
      copy.hold_prior();
      copy.learn(rows.slice(first, count),
                 std::span(predictions_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
      combined.add(1, copy.natural_parameters());
      combined.add(-1, before);
      noise += copy.noise_variance() / 2;
    }
    filter_.merge(combined, static_cast<double>(rows.count()), noise);
    const double learned = rows_ + static_cast<double>(rows.count());
    if (learned < next_prior_update_) return;
    filter_.update_prior();
    next_prior_update_ = std::max(learned + 100, std::floor(learned * 1.2));  // as in the filter
  }

  const FeatureMap& map_;
  const Index block_rows_;
  const StreamOptions options_;
  KalmanFilter<double> filter_;
  FeatureScales scales_;
  std::vector<double> predictions_;
  double loss_ = 0;
  double rows_ = 0;
  double next_prior_update_ = 200;
};

double median_loss(const FeatureMap& map, const std::vector<RowBlock<double>>& blocks, Index block_rows) {
  std::vector<double> losses;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    MergedPass pass(map, blocks.front(), seed, block_rows);
    for (const RowBlock<double>& block : blocks) pass.learn(block);
    losses.push_back(pass.loss());
  }
  std::sort(losses.begin(), losses.end());
  return losses[losses.size() / 2];
}

void compare(const std::string& folder, const RealDataSet& data_set) {
  FeatureMap map;
  const auto blocks = read_blocks(map, folder + data_set.train, data_set.columns, true);
  if (blocks.front().is_dense) return;
  const double one = median_loss(map, blocks, 0);
  fmt::print("{:<26} {:>12.4f}", data_set.name, one);
  for (const Index block_rows : {16, 64, 256})
    fmt::print(" {:>9.2f}%", 100 * (median_loss(map, blocks, block_rows) / one - 1));
  fmt::print("\n");
}

}  // namespace
}  // namespace dyad

int main() {
  const char* folder = std::getenv("DYAD_DATA");
  if (folder == nullptr) {
    fmt::print("merged blocks: skipped, because DYAD_DATA is not set to the folder of the data\n");
    return 0;
  }
  fmt::print(
      "Progressive loss of one filter of rank {}, and its change with two filters that are merged after 16, 64 and 256 "
      "rows each; medians of {} seeds\n",
      dyad::rank, dyad::seeds);
  fmt::print("{:<26} {:>12} {:>10} {:>10} {:>10}\n", "", "one filter", "16", "64", "256");
  for (const dyad::RealDataSet& data_set : dyad::real_data_sets()) dyad::compare(folder, data_set);
}
