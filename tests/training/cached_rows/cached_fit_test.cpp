#include "training/cached_rows/cached_fit.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "planted_rows.h"
#include "support.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

/// K is singular if rows are repeated or if all features are zero.
TEST(CachedFit, StaysFiniteWithSingularKernels) {
  for (const bool are_zero : {false, true}) {
    PlantedRows rows(make_planted(Kind::gfm, 5, 1), 1.4);
    const auto half = static_cast<std::ptrdiff_t>(rows.block.targets.size() / 2);
    std::copy_n(rows.block.values.begin(), half * rows.newton.shape.dim,
                rows.block.values.begin() + half * rows.newton.shape.dim);
    std::copy_n(rows.block.targets.begin(), half, rows.block.targets.begin() + half);
    if (are_zero) std::fill(rows.block.values.begin(), rows.block.values.end(), 0.0);
    const CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
    EXPECT_TRUE(fit.is_finite);
    EXPECT_TRUE(fit.parameters.model().is_finite());
  }
}

/// Restarts recover models from 1.2 rows per unknown, where Gauss-Newton from the moments fails in most cases.
TEST(CachedFit, RecoversExactlyFromFewRowsAtAnyConditionNumber) {
  for (const Kind kind : {Kind::gfm, Kind::bilinear})
    for (const double condition : {1.0, 5.0, 100.0})
      for (std::uint64_t seed = 1; seed <= 2; ++seed) {
        PlantedRows rows(make_planted(kind, condition, seed), 1.3);
        const CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
        EXPECT_TRUE(fit.is_exact) << condition << " " << seed;
        EXPECT_LT(rows.error_of(fit.parameters), 1e-8) << condition << " " << seed;
      }
}

TEST(CachedFit, RecoversPhaseAndSemidefiniteMatrices) {
  PlantedOptions positive = make_planted(Kind::sensing, 5, 1);
  positive.signs = Signs::positive;
  for (const bool is_negative : {false, true}) {
    PlantedRows rows(positive, 1.5);
    // The sign is found from the targets, also if the model allows any sign.
    rows.newton.shape.positive = false;
    if (is_negative)
      for (double& y : rows.block.targets) y = -y;
    CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
    EXPECT_TRUE(fit.is_exact);
    if (is_negative) fit.parameters.signs *= -1;
    EXPECT_LT(rows.error_of(fit.parameters), 1e-8);
  }
  PlantedRows phase(make_planted(Kind::phase, 1, 4), 1.8);
  const CachedFit fit = fit_cached_rows(phase.observed(), phase.newton, StartSearch::thorough, phase.pool);
  EXPECT_TRUE(fit.is_exact);
  EXPECT_LT(phase.error_of(fit.parameters), 1e-8);
}

/// 10% of the targets are off by 10 standard deviations. The error is close to that of least squares without them.
TEST(CachedFit, ExcludesOutliers) {
  for (const Kind kind : {Kind::gfm, Kind::phase, Kind::bilinear})
    for (const double noise : {0.0, 0.1}) {
      PlantedOptions clean = make_planted(kind, 2, 3);
      clean.noise = noise;
      PlantedOptions contaminated = clean;
      contaminated.outliers = 0.1;
      PlantedRows clean_rows(clean, 6);
      PlantedRows rows(contaminated, 6);
      const CachedFit reference =
          fit_cached_rows(clean_rows.observed(), clean_rows.newton, StartSearch::thorough, clean_rows.pool);
      const CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
      EXPECT_LT(rows.error_of(fit.parameters), 1.5 * clean_rows.error_of(reference.parameters) + 1e-6) << noise;
      const auto excluded = static_cast<double>((fit.weights.array() == 0).count());
      EXPECT_NEAR(excluded / static_cast<double>(fit.weights.size()), 0.1, 0.1) << noise;
    }
}

/// Rows of weight 2 count as two rows.
TEST(CachedFit, WeightsEqualRepeatedRows) {
  PlantedOptions problem = make_planted(Kind::sensing, 1, 5);
  problem.noise = 0.1;
  PlantedRows rows(problem, 4);
  const std::size_t total = rows.block.targets.size();
  std::vector<double> weights(total, 1);
  std::fill(weights.begin(), weights.begin() + 20, 2);
  const CachedFit weighted =
      fit_cached_rows(rows.block.view().weighted(weights), rows.newton, StartSearch::thorough, rows.pool);
  RowMajorMatrix<double> X(static_cast<Index>(total) + 20, problem.dim);
  const auto original = as_row_major(rows.block.values, static_cast<Index>(total), problem.dim);
  X << original, original.topRows(20);
  std::vector<double> targets = rows.block.targets;
  targets.insert(targets.end(), rows.block.targets.begin(), rows.block.targets.begin() + 20);
  const test::OwnedRows<double> repeated(X, targets);
  const CachedFit by_rows = fit_cached_rows(repeated.dense(), rows.newton, StartSearch::thorough, rows.pool);
  EXPECT_NEAR(rows.error_of(weighted.parameters), rows.error_of(by_rows.parameters), 1e-3);
}

/// Gauss-Newton from the moments ends in a local minimum for some seeds at condition number 20. A fit of higher rank
/// leads out of it.
TEST(CachedFit, RecoversWithNoiseAtAnyConditionNumber) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    PlantedOptions problem = make_planted(Kind::gfm, 20, seed);
    problem.noise = 0.01;
    PlantedRows rows(problem, 4);
    const CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
    EXPECT_NEAR(std::sqrt(fit.noise_variance), 0.01, 0.002) << seed;
  }
}

}  // namespace
}  // namespace dyad
