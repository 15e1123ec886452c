#include "solvers/irls/log_det_irls.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "recovery/planted_problem.h"
#include "recovery/recovery_error.h"
#include "support.h"
#include "training/one_pass/cached_fit.h"

namespace dyad {
namespace {

struct PlantedRows {
  PlantedRows(const PlantedOptions& options, double rows_per_unknown) : problem(options), planted(options), pool(2) {
    shape = options.shape();
    shape.dim = options.total_dim();
    const auto count = static_cast<Index>(std::ceil(rows_per_unknown * static_cast<double>(shape.unknowns())));
    planted.generate(0, count, pool, block);
  }

  [[nodiscard]] double error_of(const SignedFactors<double>& parameters) const {
    const Model<double> model = parameters.model();
    return (as_vector(model.weights) - as_vector(planted.truth().weights)).norm() +
           interaction_error(model, planted.truth());
  }

  PlantedOptions problem;
  PlantedProblem planted;
  ThreadPool pool;
  ModelShape shape;
  DenseBlock<double> block;
};

PlantedOptions make_problem(Kind kind, double condition, std::uint64_t seed) {
  PlantedOptions problem;
  problem.kind = kind;
  problem.dim = kind == Kind::bilinear ? 20 : 30;
  if (kind == Kind::bilinear) problem.right_dim = 25;
  problem.rank = 2;
  problem.condition = condition;
  problem.seed = seed;
  return problem;
}

TEST(LogDetIrls, FirstCandidateRecoversIllConditionedModels) {
  for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::bilinear})
    for (const double condition : {1.0, 100.0})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const PlantedRows rows(make_problem(kind, condition, seed), 2);
        ASSERT_TRUE(LogDetIrls::can_solve(rows.block.view(), rows.shape));
        LogDetIrls irls(rows.block.view(), {rows.shape, seed, {}});
        EXPECT_LT(rows.error_of(irls.next_candidate().value()), 1e-3) << condition << " " << seed;
      }
}

TEST(LogDetIrls, CandidatesEstimateTheInterceptAndFreeSquares) {
  PlantedOptions problem = make_problem(Kind::gfm, 5, 1);
  problem.intercept = 0.7;
  problem.diagonal = Diagonal::free;
  const PlantedRows rows(problem, 2);
  LogDetIrls irls(rows.block.view(), {rows.shape, 1, {}});
  const Model<double> model = irls.next_candidate().value().model();
  EXPECT_NEAR(model.intercept, 0.7, 1e-4);
  std::vector<double> predictions(rows.block.targets.size());
  model.predict(rows.block.view(), predictions);
  for (std::size_t i = 0; i < predictions.size(); ++i) EXPECT_NEAR(predictions[i], rows.block.targets[i], 1e-2);
}

TEST(LogDetIrls, RowsOfWeightZeroHaveNoEffect) {
  PlantedRows rows(make_problem(Kind::gfm, 5, 2), 2);
  std::vector<double> weights(rows.block.targets.size(), 1);
  rows.block.targets[3] += 100;
  weights[3] = 0;
  LogDetIrls irls(rows.block.view().weighted(weights), {rows.shape, 1, {}});
  EXPECT_LT(rows.error_of(irls.next_candidate().value()), 1e-4);
}

/// K is singular if rows are repeated or if all features are zero.
TEST(CachedFit, StaysFiniteWithSingularKernels) {
  for (const bool are_zero : {false, true}) {
    PlantedRows rows(make_problem(Kind::gfm, 5, 1), 1.4);
    const auto half = static_cast<std::ptrdiff_t>(rows.block.targets.size() / 2);
    std::copy_n(rows.block.values.begin(), half * rows.shape.dim, rows.block.values.begin() + half * rows.shape.dim);
    std::copy_n(rows.block.targets.begin(), half, rows.block.targets.begin() + half);
    if (are_zero) std::fill(rows.block.values.begin(), rows.block.values.end(), 0.0);
    NewtonOptions options;
    options.shape = rows.shape;
    const NewtonFit fit = fit_cached_rows(rows.block.view(), options, rows.pool);
    EXPECT_TRUE(fit.is_finite);
    EXPECT_TRUE(fit.parameters.model().is_finite());
  }
}

TEST(LogDetIrls, ZeroDiagonalsAreNotSupported) {
  PlantedOptions problem = make_problem(Kind::gfm, 1, 1);
  problem.diagonal = Diagonal::zero;
  const PlantedRows rows(problem, 2);
  EXPECT_FALSE(LogDetIrls::can_solve(rows.block.view(), rows.shape));
}

/// Restarts recover models from 1.2 rows per unknown, where Gauss-Newton from the moments fails in most cases.
TEST(CachedFit, RecoversExactlyFromFewRowsAtAnyConditionNumber) {
  for (const Kind kind : {Kind::gfm, Kind::bilinear})
    for (const double condition : {1.0, 5.0, 100.0})
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        PlantedRows rows(make_problem(kind, condition, seed), 1.3);
        NewtonOptions options;
        options.shape = rows.shape;
        options.seed = seed;
        const NewtonFit fit = fit_cached_rows(rows.block.view(), options, rows.pool);
        EXPECT_TRUE(fit.is_exact) << condition << " " << seed;
        EXPECT_LT(rows.error_of(fit.parameters), 1e-8) << condition << " " << seed;
      }
}

}  // namespace
}  // namespace dyad
