#include "solvers/irls/matrix_free_irls.h"

#include <gtest/gtest.h>

#include "planted_rows.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

/// Smallest error of the candidates.
double best_candidate_error(PlantedRows& rows) {
  MatrixFreeIrls irls(rows.observed(), {rows.newton.shape, 1, {}}, rows.pool);
  double best = std::numeric_limits<double>::infinity();
  while (const auto candidate = irls.next_candidate()) best = std::min(best, rows.error_of(*candidate));
  return best;
}

TEST(MatrixFreeIrls, CandidatesAreCloseAtAnyConditionNumber) {
  for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::bilinear})
    for (const double condition : {1.0, 5.0, 100.0}) {
      PlantedRows rows(make_planted(kind, condition, 1), 2);
      EXPECT_LT(best_candidate_error(rows), 1e-4) << condition;
    }
}

TEST(MatrixFreeIrls, EstimatesInterceptAndFreeSquares) {
  PlantedOptions problem = make_planted(Kind::gfm, 2, 1);
  problem.intercept = 0.7;
  problem.diagonal = Diagonal::free;
  PlantedRows rows(problem, 3);
  EXPECT_LT(best_candidate_error(rows), 1e-3);
}

TEST(MatrixFreeIrls, RowsOfWeightZeroHaveNoEffect) {
  PlantedRows rows(make_planted(Kind::gfm, 5, 2), 2.5);
  std::vector<double> weights(rows.block.targets.size(), 1);
  rows.block.targets[3] += 100;
  weights[3] = 0;
  MatrixFreeIrls irls(rows.block.view().weighted(weights), {rows.newton.shape, 1, {}}, rows.pool);
  double best = 1;
  while (const auto candidate = irls.next_candidate()) best = std::min(best, rows.error_of(*candidate));
  EXPECT_LT(best, 1e-4);
}

TEST(MatrixFreeIrls, ResultDoesNotDependOnTheThreadCount) {
  PlantedRows rows(make_planted(Kind::gfm, 5, 1), 2);
  const auto first_candidate = [&](int threads) {
    ThreadPool pool(threads);
    return MatrixFreeIrls(rows.observed(), {rows.newton.shape, 1, {}}, pool).next_candidate().value();
  };
  const SignedFactors<double> one = first_candidate(1);
  const SignedFactors<double> three = first_candidate(3);
  EXPECT_LT((one.weights - three.weights).norm(), 1e-6);
}

TEST(MatrixFreeIrls, IsFiniteForZeroRowsAndEndsWhenInterrupted) {
  PlantedRows rows(make_planted(Kind::gfm, 1, 1), 2);
  MatrixFreeIrls interrupted(rows.observed(), {rows.newton.shape, 1, [] { return true; }}, rows.pool);
  EXPECT_TRUE(interrupted.next_candidate());
  EXPECT_FALSE(interrupted.next_candidate());
  std::fill(rows.block.values.begin(), rows.block.values.end(), 0.0);
  MatrixFreeIrls irls(rows.observed(), {rows.newton.shape, 1, {}}, rows.pool);
  while (const auto candidate = irls.next_candidate()) EXPECT_TRUE(candidate->model().is_finite());
}

}  // namespace
}  // namespace dyad
