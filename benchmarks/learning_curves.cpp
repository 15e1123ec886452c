// Learning curves of recovery, for the plots of docs/paper.md and docs/recovery.md (`make paper`):
//   learning_curves FOLDER   writes solvers.csv, convergence.csv, noise_floor.csv, moments.csv and the part noise_floor
#include <array>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <dyad/recover.h>

#include "page_parts.h"

namespace {

using dyad::Index;

dyad::RecoverOptions problem(Index dim, Index rank) {
  dyad::RecoverOptions options;
  options.problem.dim = dim;
  options.problem.rank = rank;
  options.tolerance = 1e-9;
  return options;
}

/// Writes the trace of a recovery as csv lines: name, number of rows divided by kd, error.
void append_curve(std::ofstream& csv, const std::string& name, const dyad::RecoverOptions& options) {
  const auto kd = static_cast<double>(options.problem.rank * options.problem.dim);
  for (const dyad::RecoveryPoint& point : dyad::recover(options).trace)
    fmt::print(csv, "{},{},{}\n", name, static_cast<double>(point.rows) / kd, point.error());
}

/// Error by the number of rows for the solvers, without and with noise.
void solvers(std::ofstream csv) {
  for (const double noise : {0.0, 0.1})
    for (const auto& [name, solver] : {std::pair{"auto", dyad::Solver::automatic},
                                       {"kalman", dyad::Solver::kalman},
                                       {"moment", dyad::Solver::moment}}) {
      dyad::RecoverOptions options = problem(100, 3);
      options.solver = solver;
      options.problem.noise = noise;
      options.rows = noise > 0 ? 300'000 : 90'000;
      append_curve(csv, fmt::format("{}-{}", name, noise > 0 ? "noise" : "exact"), options);
    }
}

/// Error by the number of rows for both updates of the moment solver and two batch sizes.
void convergence(std::ofstream csv) {
  for (const Index batch : {5, 20})
    for (const auto& [name, update] : {std::pair{"one-scan", dyad::Update::one_scan}, {"paper", dyad::Update::paper}}) {
      dyad::RecoverOptions options = problem(200, 3);
      options.update = update;
      options.batch = batch * 3 * 200;
      append_curve(csv, fmt::format("{}-{}", name, batch), options);
    }
}

/// Asymptotic error by the batch size: mean over the last 10 of 40 batches.
void noise_floor(const std::string& folder) {
  std::ofstream csv(folder + "/noise_floor.csv");
  std::array<std::string, 3> lines{"| d = 100, k = 3 |", "| `--noise 0.1` |", "| `--residual 0.01` |"};
  for (const Index batch : {5, 10, 20, 40, 80, 160, 320}) {
    const auto asymptotic_error = [&](double noise, double residual) {
      dyad::RecoverOptions options = problem(100, 3);
      options.problem.noise = noise;
      options.problem.residual = residual;
      options.batch = batch * 3 * 100;
      options.rows = 40 * *options.batch;
      const auto trace = dyad::recover(options).trace;
      double sum = 0;
      for (std::size_t t = trace.size() - 10; t < trace.size(); ++t) sum += trace[t].error();
      return sum / 10;
    };
    const double with_noise = asymptotic_error(0.1, 0);
    const double with_residual = asymptotic_error(0, 0.01);
    fmt::print(csv, "{},{},{}\n", batch * 3 * 100, with_noise, with_residual);
    if (batch == 20 || batch == 80 || batch == 320) {
      lines[0] += fmt::format(" batch {} |", batch * 3 * 100);
      lines[1] += fmt::format(" {:.4f} |", with_noise);
      lines[2] += fmt::format(" {:.4f} |", with_residual);
    }
  }
  dyad::bench::write_part(folder, "noise_floor",
                          fmt::format("{}\n|---|---|---|---|\n{}\n{}\n", lines[0], lines[1], lines[2]));
}

/// Error by the number of rows for skewed features, with Gaussian moments as in the paper and with estimated moments.
void feature_moments(std::ofstream csv) {
  for (const auto& [name, moments] :
       {std::pair{"gaussian", dyad::Moments::gaussian}, {"estimated", dyad::Moments::estimated}})
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      dyad::RecoverOptions options = problem(100, 3);
      options.problem.features = dyad::FeatureDistribution::skewed;
      options.problem.seed = seed;
      options.moments = moments;
      options.batch = 20 * 3 * 100;
      append_curve(csv, fmt::format("{}-{}", name, seed), options);
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: learning_curves FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  solvers(std::ofstream(folder + "/solvers.csv"));
  convergence(std::ofstream(folder + "/convergence.csv"));
  noise_floor(folder);
  feature_moments(std::ofstream(folder + "/moments.csv"));
}
