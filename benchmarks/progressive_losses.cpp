// Writes the loss of each row of the first pass, predicted before it is learned, one number per line:
//   progressive_losses RANK FILE [TARGET CATEGORICAL[,...] [IGNORED[,...]]] > LOSSES
// Squared errors, or log-losses of classes. `dyad train` prints their mean only, and omits it for rows whose order
// predicts the targets.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "real_data.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_solver.h"

namespace dyad {
namespace {

std::vector<std::string> split(const std::string& names) {
  std::vector<std::string> result;
  std::istringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');) result.push_back(name);
  return result;
}

void print_losses(Index rank, const std::string& path, const ColumnOptions& columns) {
  FeatureMap map;
  const auto blocks = read_blocks(map, path, columns, true);
  const RowBlock<double>& first = blocks.front();
  TrainSettings settings;
  settings.diagonal = default_diagonal(map, first);
  settings.rank = std::min(rank, first.dim);
  settings.uses_moments = can_use_moments(first, map.target.task);
  StreamOptions options = stream_options(TrainOptions(), settings, map);
  options.feature_groups = first.new_feature_groups;
  options.kalman.shape.dim = first.dim;
  ThreadPool pool(1);
  StreamLearner<double> learner(options, pool);
  std::vector<double> predictions;
  for (const RowBlock<double>& block : blocks) {
    learner.grow(block.dim, block.left_dim);
    learner.set_feature_groups(block.new_feature_groups);
    predictions.resize(block.targets.size());
    learner.learn(block.view(), predictions);
    if (map.target.task == Task::regression)
      for (const double y : block.targets) map.target.update_bounds(map.target.unscale(y));
    for (std::size_t i = 0; i < predictions.size(); ++i)
      fmt::print("{:.9g}\n", map.target.score(block.targets[i], predictions[i]));
  }
}

}  // namespace
}  // namespace dyad

int main(int count, char** arguments) {
  const long rank = count > 2 ? std::strtol(arguments[1], nullptr, 10) : 0;
  if (rank < 1) {
    fmt::print(stderr, "usage: progressive_losses RANK FILE [TARGET CATEGORICAL[,...] [IGNORED[,...]]]\n");
    return 2;
  }
  try {
    dyad::ColumnOptions columns;
    if (count > 3) columns.target = arguments[3];
    if (count > 4) columns.categorical = dyad::split(arguments[4]);
    if (count > 5) columns.ignored = dyad::split(arguments[5]);
    dyad::print_losses(rank, arguments[2], columns);
  } catch (const std::exception& error) {
    fmt::print(stderr, "progressive_losses: {}\n", error.what());
    return 1;
  }
}
