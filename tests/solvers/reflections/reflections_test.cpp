#include "solvers/reflections/reflections.h"

#include <gtest/gtest.h>

#include "planted_rows.h"
#include "support.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

ReflectionOptions options_of(const PlantedRows& rows) {
  ReflectionOptions options;
  options.shape = rows.newton.shape;
  return options;
}

TEST(Reflections, RecoverTheSignalFromTwoRowsPerFeature) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const PlantedRows rows(make_planted(Kind::phase, 1, seed), 2.2);
    Reflections reflections(rows.observed(), options_of(rows));
    reflections.run(20000);
    EXPECT_TRUE(reflections.has_converged()) << seed;
    EXPECT_LT(rows.error_of(reflections.candidate()), 1e-4) << seed;
  }
}

TEST(Reflections, RecoverSemidefiniteMatricesOfEitherSign) {
  for (const double sign : {1.0, -1.0}) {
    PlantedOptions problem = make_planted(Kind::sensing, 2, 3);
    problem.signs = Signs::positive;
    PlantedRows rows(problem, 1.6);
    for (double& y : rows.block.targets) y *= sign;
    ReflectionOptions options = options_of(rows);
    options.sign = sign;
    options.starts = 3;
    Reflections reflections(rows.observed(), options);
    reflections.run(20000);
    EXPECT_TRUE(reflections.has_converged());
    SignedFactors<double> found = reflections.candidate();
    EXPECT_EQ(found.signs, Vector<double>::Constant(2, sign));
    found.signs *= sign;
    EXPECT_LT(rows.error_of(found), 1e-4);
  }
}

/// Two calls give the same iterations as one.
TEST(Reflections, Continue) {
  const PlantedRows rows(make_planted(Kind::phase, 1, 1), 1.3);
  Reflections once(rows.observed(), options_of(rows));
  Reflections twice(rows.observed(), options_of(rows));
  once.run(40);
  twice.run(25);
  twice.run(15);
  EXPECT_EQ(once.iterations(), twice.iterations());
  once.run(1);
  twice.run(1);
  EXPECT_EQ(once.candidate().A, twice.candidate().A);
}

TEST(Reflections, IgnoreRowsOfWeightZero) {
  PlantedRows rows(make_planted(Kind::phase, 1, 2), 4);
  std::vector<double> weights(rows.block.targets.size(), 1);
  for (std::size_t i = 0; i < weights.size(); i += 4) {
    weights[i] = 0;
    rows.block.targets[i] = 1e6;
  }
  Reflections reflections(rows.block.view().weighted(weights), options_of(rows));
  reflections.run(5000);
  EXPECT_LT(rows.error_of(reflections.candidate()), 1e-4);
}

TEST(Reflections, AreFiniteForZeroNegativeAndHugeTargetsAndZeroRows) {
  auto rows = test::random_rows<double>(40, 10, 1);
  ReflectionOptions options;
  options.shape = ModelShape::of(Kind::phase);
  options.shape.dim = 10;
  for (const bool has_zero_rows : {false, true}) {
    if (has_zero_rows) rows.X.setZero();
    for (const double target : {0.0, -1.0, 1e300}) {
      std::fill(rows.targets.begin(), rows.targets.end(), target);
      Reflections reflections(rows.dense(), options);
      reflections.run(10);
      EXPECT_TRUE(reflections.candidate().A.allFinite()) << target;
    }
  }
}

TEST(Reflections, RequireSymmetricMeasurementsWithATiedDiagonal) {
  const auto rows = test::random_rows<double>(10, 4, 1);
  ModelShape shape = ModelShape::of(Kind::sensing);
  EXPECT_TRUE(Reflections::can_solve(rows.dense(), shape));
  shape.left_dim = 2;
  EXPECT_FALSE(Reflections::can_solve(rows.dense(), shape));
  EXPECT_FALSE(Reflections::can_solve(rows.dense(), ModelShape::of(Kind::gfm)));
}

}  // namespace
}  // namespace dyad
