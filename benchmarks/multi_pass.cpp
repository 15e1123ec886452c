// Multi-pass training. On real data, in the folder DYAD_DATA: loss of default options compared with one pass and with
// larger ranks, and the time of a variational sweep over ratings. On generated data: number of passes that the moment
// preconditioner saves in Gauss-Newton.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <dyad/evaluate.h>
#include <dyad/train.h>

#include "data/row_cache.h"
#include "real_data.h"
#include "solvers/gauss_newton/levenberg_marquardt.h"
#include "solvers/variational/sweeps.h"
#include "training/one_pass/stream_learner.h"
#include "training/state/train_solver.h"

namespace dyad {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Result {
  double loss = 0;
  double seconds = 0;
};

/// Medians over seeds 1 to 5 of the loss on the test file and of the time of training, including parsing and writing.
Result train_and_test(const std::string& folder, const RealDataSet& data_set, Index rank, bool one_pass) {
  const std::string model =
      (std::filesystem::temp_directory_path() / fmt::format("dyad-multi-pass-{}", getpid())).string();
  std::vector<double> losses;
  std::vector<double> seconds;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    TrainOptions options;
    options.data.paths = {folder + data_set.train};
    options.columns = data_set.columns;
    options.model_path = model;
    options.rank = rank;
    options.seed = seed;
    if (one_pass) options.passes = 1;
    seconds.push_back(train(options).seconds);
    PredictOptions test;
    test.data.paths = {folder + data_set.test};
    test.model_path = model;
    losses.push_back(evaluate(test).metrics.value().loss);
  }
  std::remove(model.c_str());
  return {median_of(losses), median_of(seconds)};
}

double deviation_of_targets(const std::string& folder, const RealDataSet& data_set) {
  FeatureMap map;
  double mean = 0;
  double square = 0;
  double count = 0;
  for (const RowBlock<double>& block : read_blocks(map, folder + data_set.train, data_set.columns, true))
    for (const double y : block.targets) {
      const double value = map.target.unscale(y);
      mean += value;
      square += value * value;
      count += 1;
    }
  return std::sqrt(square / count - std::pow(mean / count, 2));
}

void compare_real(const std::string& folder) {
  fmt::print("Multi-pass training: default options, median of seeds 1 to 5\n");
  fmt::print("{:<24} {:>10} {:>10} {:>8} {:>10} {:>10}\n", "", "one pass", "default", "seconds", "k = 16", "k = 32");
  for (const RealDataSet& data_set : real_data_sets()) {
    if (*data_set.test == '\0') continue;
    const double scale = data_set.has_standardized_loss ? deviation_of_targets(folder, data_set) : 1;
    const Result result = train_and_test(folder, data_set, 8, false);
    fmt::print("{:<24} {:>10.4f} {:>10.4f} {:>8.2f} {:>10.4f} {:>10.4f}\n", data_set.name,
               train_and_test(folder, data_set, 8, true).loss / scale, result.loss / scale, result.seconds,
               train_and_test(folder, data_set, 16, false).loss / scale,
               train_and_test(folder, data_set, 32, false).loss / scale);
  }
}

void time_sweeps(const std::string& folder) {
  FeatureMap map;
  const auto blocks = read_blocks(map, folder + "/ratings/movietweetings.train.csv", rating_columns(), true);
  RowCache<double> cache;
  for (const RowBlock<double>& block : blocks) cache.append(block.view());
  TrainSettings settings;
  settings.diagonal = Diagonal::zero;
  StreamOptions options = stream_options(TrainOptions(), settings, map);
  options.kalman.shape.dim = map.dim();
  ThreadPool pool(0);
  StreamLearner<double> learner(options, pool);
  const Rows<double> rows = cache.view(map.dim());
  std::vector<double> predictions(static_cast<std::size_t>(rows.count()));
  learner.learn(rows, predictions);
  VariationalSweeps<double> sweeps(rows, make_likelihood(Task::regression), learner.filter().posterior(), pool);
  constexpr int count = 50;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) sweeps.sweep();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("variational sweep over MovieTweetings, k = 8: {:.1f} ms, mean of {}\n", 1000 * seconds / count, count);
}

/// Passes over all rows until Levenberg-Marquardt converges.
Index passes_to_converge(const Rows<double>& rows, NewtonOptions options, bool has_moment_preconditioner,
                         ThreadPool& pool) {
  options.has_moment_preconditioner = has_moment_preconditioner;
  Random random(3, 0);
  SignedFactors<double> start;
  start.diagonal = options.shape.diagonal;
  start.weights = Vector<double>::Zero(rows.dim());
  if (options.shape.diagonal == Diagonal::free) start.squares = Vector<double>::Zero(rows.dim());
  start.A = 0.1 * random_normal<double>(random, rows.dim(), options.shape.rank);
  start.signs = alternating_signs<double>(options.shape.rank);
  LevenbergMarquardt solver(rows, options, pool);
  solver.start(start);
  solver.run();
  return solver.passes();
}

void compare_preconditioners() {
  fmt::print(
      "\nGauss-Newton, 4000 rows, d = 30, k = 4, ridge 1e-3: passes over all rows until convergence, by "
      "preconditioner\n");
  fmt::print("{:<32} {:>14} {:>14} {:>8}\n", "", "diagonal", "moments", "saved");
  ThreadPool pool(0);
  for (const double correlation : {0.0, 0.5, 0.8})
    for (const Diagonal diagonal : {Diagonal::tied, Diagonal::free}) {
      double diagonal_passes = 0;
      double moment_passes = 0;
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Random random(seed, 7);
        RowMajorMatrix<double> X = random_normal<double>(random, 4000, 30);
        const Vector<double> common = random_normal<double>(random, 4000, 1);
        for (Index j = 0; j < 30; ++j)
          X.col(j) = std::sqrt(1 - correlation) * X.col(j) + std::sqrt(correlation) * common;
        const RowMajorMatrix<double> A = random_normal<double>(random, 30, 4) / std::sqrt(30);
        const RowMajorMatrix<double> p = X * A;
        std::vector<double> y(4000);
        for (std::size_t i = 0; i < y.size(); ++i) {
          const auto at = static_cast<Index>(i);
          y[i] = p(at, 0) * p(at, 0) - p(at, 1) * p(at, 1) + p(at, 2) + 0.3 * random.normal();
        }
        NewtonOptions options;
        options.shape.rank = 4;
        options.shape.diagonal = diagonal;
        options.ridge = {4, 4};  // 1e-3 times the number of rows
        const auto rows = Rows<double>::dense({X.data(), static_cast<std::size_t>(X.size())}, 30, y);
        diagonal_passes += static_cast<double>(passes_to_converge(rows, options, false, pool)) / 10;
        moment_passes += static_cast<double>(passes_to_converge(rows, options, true, pool)) / 10;
      }
      fmt::print(
          "{:<32} {:>14.0f} {:>14.0f} {:>7.0f}%\n",
          fmt::format("correlation {:g}, diagonal {}", correlation, diagonal == Diagonal::tied ? "tied" : "free"),
          diagonal_passes, moment_passes, 100 * (1 - moment_passes / diagonal_passes));
    }
}

}  // namespace
}  // namespace dyad

int main() {
  if (const char* folder = std::getenv("DYAD_DATA")) {
    dyad::compare_real(folder);
    dyad::time_sweeps(folder);
  } else {
    fmt::print("multi-pass training on real data: skipped, because DYAD_DATA is not set to the folder of the data\n");
  }
  dyad::compare_preconditioners();
}
