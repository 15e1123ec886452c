#include "solvers/irls/log_det_irls.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "planted_rows.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

TEST(LogDetIrls, FirstCandidateRecoversIllConditionedModels) {
  for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::bilinear})
    for (const double condition : {1.0, 100.0})
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const PlantedRows rows(make_planted(kind, condition, seed), 2);
        ASSERT_TRUE(LogDetIrls::can_solve(rows.block.view(), rows.newton.shape));
        LogDetIrls irls(rows.block.view(), {rows.newton.shape, seed, {}});
        EXPECT_LT(rows.error_of(irls.next_candidate().value()), 1e-3) << condition << " " << seed;
      }
}

TEST(LogDetIrls, CandidatesEstimateTheInterceptAndFreeSquares) {
  PlantedOptions problem = make_planted(Kind::gfm, 5, 1);
  problem.intercept = 0.7;
  problem.diagonal = Diagonal::free;
  const PlantedRows rows(problem, 2);
  LogDetIrls irls(rows.block.view(), {rows.newton.shape, 1, {}});
  const Model<double> model = irls.next_candidate().value().model();
  EXPECT_NEAR(model.intercept, 0.7, 1e-4);
  std::vector<double> predictions(rows.block.targets.size());
  model.predict(rows.block.view(), predictions);
  for (std::size_t i = 0; i < predictions.size(); ++i) EXPECT_NEAR(predictions[i], rows.block.targets[i], 1e-2);
}

TEST(LogDetIrls, RowsOfWeightZeroHaveNoEffect) {
  PlantedRows rows(make_planted(Kind::gfm, 5, 2), 2);
  std::vector<double> weights(rows.block.targets.size(), 1);
  rows.block.targets[3] += 100;
  weights[3] = 0;
  LogDetIrls irls(rows.block.view().weighted(weights), {rows.newton.shape, 1, {}});
  EXPECT_LT(rows.error_of(irls.next_candidate().value()), 1e-4);
}

/// A zero diagonal is estimated as a free one, and Gauss-Newton restricts it.
TEST(LogDetIrls, RecoversOffDiagonalsOfZeroDiagonals) {
  PlantedOptions problem = make_planted(Kind::gfm, 1, 1);
  problem.diagonal = Diagonal::zero;
  const PlantedRows rows(problem, 2.5);
  LogDetIrls irls(rows.block.view(), {rows.newton.shape, 1, {}});
  EXPECT_LT(rows.error_of(irls.next_candidate().value()), 1e-3);
}

}  // namespace
}  // namespace dyad
