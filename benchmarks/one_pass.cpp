// Loss of one pass over real data, and its dependence on the initial prior variances.
// Requires the data in the folder DYAD_DATA.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "likelihood/logistic.h"
#include "real_data.h"
#include "solvers/kalman/unknown_features.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_solver.h"

namespace dyad {
namespace {

/// Mean loss of the predictions f of targets y.
class Loss {
 public:
  explicit Loss(const Target& target) : target_(target) {}
  void add(double y, double f) {
    rows_ += 1;
    sum_ += target_.score(y, f);
  }
  [[nodiscard]] double value() const { return likelihood_of(target_.task).metric(sum_ / rows_); }

 private:
  const Target& target_;
  double rows_ = 0;
  double sum_ = 0;
};

struct Losses {
  double progressive = 0;
  double test = 0;
};

/// Trains one pass with initial prior variances that are multiplied by `prior_scale`, and computes the losses. Without
/// test rows, both losses are progressive.
Losses run(const FeatureMap& map, const std::vector<RowBlock<double>>& train, const std::vector<RowBlock<double>>& test,
           Index rank, double prior_scale, std::uint64_t seed) {
  TrainSettings settings;
  settings.seed = seed;
  settings.diagonal = default_diagonal(map, train.front());
  settings.rank = std::min<Index>(rank, train.front().dim);
  settings.uses_moments = can_use_moments(train.front(), map.target.task);
  StreamOptions options = stream_options(TrainOptions(), settings, map);
  options.prior_scale = prior_scale;
  options.feature_groups = train.front().new_feature_groups;
  options.kalman.shape.dim = train.front().dim;
  ThreadPool pool(0);
  StreamLearner<double> learner(options, pool);
  Loss progressive(map.target);
  std::vector<double> predictions;
  for (const RowBlock<double>& block : train) {
    learner.grow(block.dim, block.left_dim);
    learner.set_feature_groups(block.new_feature_groups);
    predictions.resize(block.targets.size());
    learner.learn(block.view(), predictions);
    for (std::size_t i = 0; i < predictions.size(); ++i) progressive.add(block.targets[i], predictions[i]);
  }
  Loss test_loss(map.target);
  const KalmanFilter<double>& filter = learner.filter();
  std::vector<double> variances;
  for (const RowBlock<double>& block : test) {
    predictions.resize(block.targets.size());
    variances.resize(block.targets.size());
    std::size_t cell = 0;
    predict_with_unknown_features<double>(
        filter, block.view(),
        [&](Index row, std::vector<Index>& groups) {
          for (; cell < block.unknown_cells.size() && block.unknown_cells[cell].row == row; ++cell)
            groups.push_back(block.unknown_cells[cell].group);
        },
        predictions, variances);
    for (std::size_t i = 0; i < predictions.size(); ++i)
      test_loss.add(block.targets[i], filter.learns_prior() ? filter.options().likelihood->posterior_predictor(
                                                                  predictions[i], variances[i])
                                                            : predictions[i]);
  }
  return {progressive.value(), test.empty() ? progressive.value() : test_loss.value()};
}

/// Losses of each seed.
struct SeedLosses {
  std::vector<double> progressive;
  std::vector<double> test;
};

SeedLosses run_seeds(const FeatureMap& map, const std::vector<RowBlock<double>>& train,
                     const std::vector<RowBlock<double>>& test, Index rank, double prior_scale) {
  constexpr std::uint64_t seeds = 5;
  SeedLosses losses;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const Losses result = run(map, train, test, rank, prior_scale, seed);
    losses.progressive.push_back(result.progressive);
    losses.test.push_back(result.test);
  }
  return losses;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Standard error of the mean of the ratios of two lists.
double ratio_error(const std::vector<double>& values, const std::vector<double>& bases) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double ratio = values[i] / bases[i];
    sum += ratio;
    squares += ratio * ratio;
  }
  return std::sqrt(std::max(0.0, squares - sum * sum / count) / (count - 1) / count);
}

void compare(const std::string& folder, const RealDataSet& data_set) {
  FeatureMap map;
  const auto train = read_blocks(map, folder + data_set.train, data_set.columns, true);
  std::vector<RowBlock<double>> test;
  if (*data_set.test != '\0') test = read_blocks(map, folder + data_set.test, {}, false);
  double scale = 1;
  double mean = 0;
  double square = 0;
  double count = 0;
  for (const RowBlock<double>& block : train)
    for (const double y : block.targets) {
      const double value = map.target.unscale(y);
      if (map.target.task == Task::regression) map.target.update_bounds(value);
      mean += value;
      square += value * value;
      count += 1;
    }
  if (data_set.has_standardized_loss) scale = std::sqrt(square / count - std::pow(mean / count, 2));
  for (const Index rank : {8, 16}) {
    const SeedLosses base = run_seeds(map, train, test, rank, 1);
    fmt::print("{:<24} {:>4} {:>12.4f} {:>10.4f}", data_set.name, rank, median(base.progressive) / scale,
               median(base.test) / scale);
    for (const double prior_scale : {1.0 / 3, 3.0}) {
      const SeedLosses scaled = run_seeds(map, train, test, rank, prior_scale);
      fmt::print(" {:>8.2f}% ({:.2f})", 100 * (median(scaled.test) / median(base.test) - 1),
                 100 * ratio_error(scaled.test, base.test));
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace dyad

int main() {
  const char* folder = std::getenv("DYAD_DATA");
  if (folder == nullptr) {
    fmt::print("one pass over real data: skipped, because DYAD_DATA is not set to the folder of the data\n");
    return 0;
  }
  fmt::print(
      "Loss of one pass, median of seeds 1 to 5, and its change with its standard error if the initial prior variances "
      "are divided or multiplied by 3\n");
  fmt::print("{:<24} {:>4} {:>12} {:>10} {:>16} {:>16}\n", "", "rank", "progressive", "test", "/ 3", "x 3");
  for (const dyad::RealDataSet& data_set : dyad::real_data_sets()) dyad::compare(folder, data_set);
}
