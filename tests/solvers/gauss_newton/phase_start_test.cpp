#include "solvers/gauss_newton/phase_start.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "recovery/planted_problem.h"
#include "support.h"

namespace dyad {
namespace {

/// Planted phase retrieval problem without noise.
struct PhaseProblem {
  DenseBlock<double> block;
  Vector<double> truth;

  /// Distance from the truth, which is determined up to its sign.
  [[nodiscard]] double error_of(const SignedFactors<double>& found) const {
    return std::min((found.A.col(0) - truth).norm(), (found.A.col(0) + truth).norm());
  }
};

PhaseProblem make_problem(Index dim, Index count, std::uint64_t seed) {
  PlantedOptions problem;
  problem.kind = Kind::phase;
  problem.dim = dim;
  problem.rank = 1;
  problem.seed = seed;
  const PlantedProblem planted(problem);
  ThreadPool pool(1);
  PhaseProblem result;
  planted.generate(0, count, pool, result.block);
  result.truth = as_row_major(planted.truth().factors, dim, 1).col(0) * std::sqrt(planted.truth().spectrum[0]);
  return result;
}

NewtonOptions rank_one_options() {
  NewtonOptions options;
  options.shape.rank = 1;
  return options;
}

TEST(PhaseStart, RecoversTheSignalFromTwoRowsPerFeature) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const PhaseProblem problem = make_problem(60, 120, seed);
    const PhaseStart start = compute_phase_start(problem.block.view(), rank_one_options());
    EXPECT_LT(problem.error_of(start.parameters), 1e-4) << seed;
    EXPECT_GT(start.passes, 0);
  }
}

TEST(PhaseStart, IgnoresRowsOfWeightZero) {
  PhaseProblem problem = make_problem(30, 120, 2);
  std::vector<double> weights(120, 1);
  for (std::size_t i = 0; i < 30; ++i) {
    weights[4 * i] = 0;
    problem.block.targets[4 * i] = 1e6;
  }
  const auto start = compute_phase_start(problem.block.view().weighted(weights), rank_one_options());
  EXPECT_LT(problem.error_of(start.parameters), 1e-4);
}

TEST(PhaseStart, IsFiniteForZeroNegativeAndHugeTargets) {
  auto rows = test::random_rows<double>(40, 10, 1);
  for (const double target : {0.0, -1.0, 1e300}) {
    std::fill(rows.targets.begin(), rows.targets.end(), target);
    EXPECT_TRUE(compute_phase_start(rows.dense(), rank_one_options()).parameters.A.allFinite()) << target;
  }
}

}  // namespace
}  // namespace dyad
