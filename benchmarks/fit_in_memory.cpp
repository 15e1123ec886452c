// What the library needs for rows that are in memory already: fit_in_memory FOLDER SOLVER RUNS reads the arrays that
// python_fit.py has left in the folder, and prints the seconds of each run.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <dyad/memory.h>
#include <dyad/train.h>

#include "io/npy.h"

namespace {

template <typename Number>
std::vector<Number> array_of(const std::string& path) {
  dyad::NpyReader reader(path);
  std::vector<double> numbers(static_cast<std::size_t>(reader.rows()));
  (void)reader.next(numbers);
  return {numbers.begin(), numbers.end()};
}

void run(const std::string& folder, const std::string& solver, int runs) {
  const auto offsets = array_of<std::int32_t>(folder + "/offsets.npy");
  const auto indices = array_of<std::int32_t>(folder + "/indices.npy");
  const auto values = array_of<double>(folder + "/values.npy");
  const auto targets = array_of<double>(folder + "/targets.npy");
  dyad::MemoryRows rows;
  rows.count = static_cast<dyad::Index>(targets.size());
  const auto columns = static_cast<dyad::Index>(array_of<double>(folder + "/columns.npy").front());
  rows.features = dyad::MemorySparse{columns, offsets.data(), indices.data(), values.data()};
  rows.targets = targets;
  for (int i = 0; i < runs; ++i) {
    dyad::TrainOptions options;
    options.data.memory = &rows;
    options.rank = 8;
    if (solver == "kalman") options.solver = dyad::Solver::kalman;
    const auto start = std::chrono::steady_clock::now();
    (void)dyad::train(options);
    std::printf("%.4f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fputs("usage: fit_in_memory FOLDER SOLVER RUNS\n", stderr);
    return 2;
  }
  try {
    run(words[1], words[2], std::atoi(words[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fit_in_memory: %s\n", error.what());
    return 1;
  }
  return 0;
}
