#include "solvers/gauss_newton/gauss_newton.h"

#include <gtest/gtest.h>

#include "recovery/planted_problem.h"
#include "recovery/recovery_error.h"
#include "support.h"

namespace dyad {
namespace {

/// A fit and its distance from the planted model.
struct Recovery {
  NewtonFit fit;
  double error = 0;
};

/// Fits `rows_per_unknown` times as many planted rows as the model has unknowns.
Recovery recover(PlantedOptions problem, double rows_per_unknown, bool sparse = false) {
  ThreadPool pool(2);
  const PlantedProblem planted(problem);
  const Index k = problem.rank;
  const Index d = problem.total_dim();
  const Index unknowns = (problem.is_bilinear() ? k * (d - k) : k * d - k * (k - 1) / 2) +
                         (problem.has_weights() ? d : 0) + (problem.diagonal == Diagonal::free ? d : 0);
  DenseBlock<double> block;
  planted.generate(0, static_cast<Index>(rows_per_unknown * static_cast<double>(unknowns)), pool, block);
  NewtonOptions options;
  options.shape.left_dim = problem.left_dim();
  options.shape.rank = k;
  options.shape.linear = problem.has_weights();
  options.shape.intercept = false;
  options.shape.positive = problem.kind == Kind::phase;
  options.shape.diagonal = problem.diagonal;
  options.seed = problem.seed;
  Recovery recovery;
  if (sparse) {
    const test::OwnedRows<double> rows(as_row_major(block.values, block.view().count(), d), block.targets);
    recovery.fit = fit_gauss_newton(rows.sparse(), options, pool);
  } else {
    recovery.fit = fit_gauss_newton(block.view(), options, pool);
  }
  const Model<double> model = recovery.fit.parameters.model();
  recovery.error = (as_vector(model.weights) - as_vector(planted.truth().weights)).norm() +
                   interaction_error(model, planted.truth());
  return recovery;
}

PlantedOptions make_options(Kind kind, Index dim, Index rank, std::uint64_t seed) {
  PlantedOptions problem;
  problem.kind = kind;
  problem.dim = dim;
  problem.rank = rank;
  problem.seed = seed;
  if (kind == Kind::bilinear) problem.right_dim = dim + 10;
  return problem;
}

TEST(GaussNewton, RecoversExactlyFromTwoRowsPerUnknown) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed)
    for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::bilinear}) {
      const Recovery recovery = recover(make_options(kind, 50, 3, seed), 2);
      EXPECT_TRUE(recovery.fit.is_exact) << seed;
      EXPECT_LT(recovery.error, 1e-9) << seed;
    }
}

TEST(GaussNewton, RecoversZeroAndFreeDiagonalsFromDenseAndSparseRows) {
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::free}) {
    PlantedOptions problem = make_options(Kind::gfm, 40, 2, 1);
    problem.diagonal = diagonal;
    for (const bool sparse : {false, true}) EXPECT_LT(recover(problem, 3, sparse).error, 1e-9);
  }
}

TEST(GaussNewton, ErrorWithNoiseDecreasesWithTheSquareRootOfRows) {
  PlantedOptions problem = make_options(Kind::gfm, 30, 2, 1);
  problem.noise = 0.1;
  const Recovery fewer_rows = recover(problem, 10);
  const Recovery more_rows = recover(problem, 40);
  EXPECT_FALSE(fewer_rows.fit.is_exact);
  // Noise variance times the degrees of freedom per row, with 40 rows per unknown.
  EXPECT_NEAR(more_rows.fit.mean_squared_residual, 0.01 * (1 - 1.0 / 40), 0.001);
  EXPECT_NEAR(fewer_rows.error / more_rows.error, 2, 0.7);
}

TEST(GaussNewton, WeightsEqualRepeatedRows) {
  auto rows = test::random_rows<double>(300, 6, 1);
  const Model<double> truth = test::random_model<double>(6, 1, 2);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  for (Index i = 0; i < 300; ++i) rows.targets[static_cast<std::size_t>(i)] += f[i];
  std::vector<double> weights(300, 1);
  RowMajorMatrix<double> repeated(350, 6);
  repeated << rows.X, rows.X.topRows(50);
  std::vector<double> targets = rows.targets;
  targets.insert(targets.end(), rows.targets.begin(), rows.targets.begin() + 50);
  std::fill(weights.begin(), weights.begin() + 50, 2);
  NewtonOptions options;
  options.shape.rank = 1;
  ThreadPool pool(1);
  const auto by_weight = fit_gauss_newton(rows.dense().weighted(weights), options, pool);
  const auto by_rows = fit_gauss_newton(test::OwnedRows<double>(repeated, targets).dense(), options, pool);
  EXPECT_NEAR(by_weight.mean_squared_residual, by_rows.mean_squared_residual, 1e-4 * by_rows.mean_squared_residual);
}

TEST(GaussNewton, StopsWhenInterrupted) {
  NewtonOptions options;
  options.shape.rank = 2;
  options.interrupted = [] { return true; };
  ThreadPool pool(1);
  EXPECT_EQ(fit_gauss_newton(test::random_rows<double>(50, 5, 1).dense(), options, pool).steps, 0);
}

}  // namespace
}  // namespace dyad
