// Time of training on rows in memory: fit_in_memory FOLDER SOLVER RUNS reads the arrays that python_fit.py wrote to the
// folder, and prints the seconds of each run.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <dyad/dataset.h>
#include <dyad/train.h>

#include "io/npy.h"

namespace {

template <typename Number>
std::vector<Number> read_array(const std::string& path) {
  dyad::NpyReader reader(path);
  std::vector<double> values(static_cast<std::size_t>(reader.rows()));
  (void)reader.next(values);
  return {values.begin(), values.end()};
}

void run(const std::string& folder, const std::string& solver, int runs) {
  const auto offsets = read_array<std::int32_t>(folder + "/offsets.npy");
  const auto indices = read_array<std::int32_t>(folder + "/indices.npy");
  const auto values = read_array<double>(folder + "/values.npy");
  const auto targets = read_array<double>(folder + "/targets.npy");
  dyad::DatasetView rows;
  rows.count = static_cast<dyad::Index>(targets.size());
  const auto columns = static_cast<dyad::Index>(read_array<double>(folder + "/columns.npy").front());
  rows.features = dyad::SparseView{columns, offsets.data(), indices.data(), values.data()};
  rows.targets = targets;
  for (int i = 0; i < runs; ++i) {
    dyad::TrainOptions options;
    options.data.dataset = &rows;
    options.rank = 8;
    if (solver == "kalman") options.solver = dyad::Solver::kalman;
    const auto start = std::chrono::steady_clock::now();
    (void)dyad::train(options);
    std::printf("%.4f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: fit_in_memory FOLDER SOLVER RUNS\n", stderr);
    return 2;
  }
  try {
    run(argv[1], argv[2], std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fit_in_memory: %s\n", error.what());
    return 1;
  }
  return 0;
}
