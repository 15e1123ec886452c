// Loss of one pass over real data: default options, which select the prior, compared with the best prior of a grid.
// Requires the data in the folder DYAD_DATA.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "likelihood/logistic.h"
#include "real_data.h"
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

/// Trains one pass, with a fixed prior if given, and computes the losses. Without test rows, both losses are
/// progressive.
Losses run(const FeatureMap& map, const std::vector<RowBlock<double>>& train, const std::vector<RowBlock<double>>& test,
           std::optional<PriorShares> prior, std::uint64_t seed) {
  TrainSettings settings;
  settings.seed = seed;
  settings.diagonal = default_diagonal(map, train.front());
  settings.rank = std::min<Index>(8, train.front().dim);
  settings.uses_moments = !prior && can_use_moments(train.front(), map.target.task);
  StreamOptions options = stream_options(TrainOptions(), settings, map);
  if (prior) {
    options.priors = {*prior};
    options.buffered_start.memory = 0;
  }
  options.kalman.shape.dim = train.front().dim;
  ThreadPool pool(0);
  StreamLearner<double> learner(options, pool);
  Loss progressive(map.target);
  std::vector<double> predictions;
  for (const RowBlock<double>& block : train) {
    learner.grow(block.dim, block.left_dim);
    predictions.resize(block.targets.size());
    learner.learn(block.view(), predictions);
    for (std::size_t i = 0; i < predictions.size(); ++i) progressive.add(block.targets[i], predictions[i]);
  }
  Loss test_loss(map.target);
  const Model<double> model = learner.model();
  for (const RowBlock<double>& block : test) {
    predictions.resize(block.targets.size());
    model.predict(block.view(), predictions);
    for (std::size_t i = 0; i < predictions.size(); ++i) test_loss.add(block.targets[i], predictions[i]);
  }
  return {progressive.value(), test.empty() ? progressive.value() : test_loss.value()};
}

double median_of_seeds(const FeatureMap& map, const std::vector<RowBlock<double>>& train,
                       const std::vector<RowBlock<double>>& test, std::optional<PriorShares> prior) {
  std::vector<double> losses;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) losses.push_back(run(map, train, test, prior, seed).test);
  std::sort(losses.begin(), losses.end());
  return losses[2];
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
  const double default_loss = median_of_seeds(map, train, test, std::nullopt) / scale;
  double best = INFINITY;
  PriorShares best_prior;
  for (const double weights : {0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8})
    for (const double factors : {0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0}) {
      const double loss = median_of_seeds(map, train, test, PriorShares{weights, factors}) / scale;
      if (!(loss < best)) continue;
      best = loss;
      best_prior = {weights, factors};
    }
  fmt::print("{:<24} {:>10.4f} {:>14.4f} {:>8.2f}% {:>10.3g} {:>10.3g}\n", data_set.name, default_loss, best,
             100 * (default_loss / best - 1), best_prior.weights, best_prior.factors);
}

}  // namespace
}  // namespace dyad

int main() {
  const char* folder = std::getenv("DYAD_DATA");
  if (folder == nullptr) {
    fmt::print("one pass over real data: skipped, because DYAD_DATA is not set to the folder of the data\n");
    return 0;
  }
  fmt::print("Loss of one pass, median of seeds 1 to 5: default options, and the best of a grid of 63 fixed priors\n");
  fmt::print("{:<24} {:>10} {:>14} {:>9} {:>10} {:>10}\n", "", "default", "best of grid", "excess", "weights",
             "factors");
  for (const dyad::RealDataSet& data_set : dyad::real_data_sets()) dyad::compare(folder, data_set);
}
