#include "training/cached_rows/fit_status.h"

#include <gtest/gtest.h>

#include "planted_rows.h"
#include "training/cached_rows/cached_fit.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

FitDiagnosis fit_and_diagnose(PlantedRows& rows) {
  const CachedFit fit = fit_cached_rows(rows.observed(), rows.newton, StartSearch::thorough, rows.pool);
  return diagnose_fit(rows.observed(), rows.newton, fit.parameters, rows.pool);
}

constexpr std::uint64_t instances = 6;

TEST(FitStatus, ConvergedWithAndWithoutNoise) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed)
    for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::phase, Kind::bilinear})
      for (const double noise : {0.0, 0.1}) {
        PlantedOptions problem = make_planted(kind, 2, seed);
        problem.noise = noise;
        PlantedRows rows(problem, noise > 0 ? 4 : 2.5);
        const FitDiagnosis diagnosis = fit_and_diagnose(rows);
        EXPECT_EQ(diagnosis.status, FitStatus::converged) << seed << " " << static_cast<int>(kind) << " " << noise;
        EXPECT_EQ(diagnosis.outliers, 0);
        // The standard deviation of n - p residuals has a relative standard error of 1 / sqrt(2 (n - p)), at most 8%.
        EXPECT_NEAR(diagnosis.noise, noise, 5 * 0.08 * noise);
      }
}

TEST(FitStatus, TooFewRows) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    PlantedRows rows(make_planted(Kind::gfm, 1, seed), 0.8);
    EXPECT_EQ(fit_and_diagnose(rows).status, FitStatus::too_few_rows);
  }
}

TEST(FitStatus, NotIdentifiableWithRepeatedColumns) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    PlantedRows rows(make_planted(Kind::sensing, 1, seed), 3);
    const Index d = rows.newton.shape.dim;
    const SignedFactors<double> truth = SignedFactors<double>::of(rows.planted.truth(), Diagonal::tied, 0);
    for (std::size_t i = 0; i < rows.block.targets.size(); ++i) {
      double* x = rows.block.values.data() + static_cast<Index>(i) * d;
      x[3] = x[5];
    }
    const Vector<double> residuals = compute_residuals(rows.observed(), truth, rows.pool);
    for (std::size_t i = 0; i < rows.block.targets.size(); ++i)
      rows.block.targets[i] -= residuals[static_cast<Index>(i)];
    EXPECT_EQ(fit_and_diagnose(rows).status, FitStatus::not_identifiable) << seed;
  }
}

TEST(FitStatus, RankTooSmall) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed)
    for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::bilinear}) {
      PlantedOptions problem = make_planted(kind, 1, seed);
      problem.noise = 0.1;
      PlantedRows rows(problem, 4);
      rows.newton.shape.rank = 1;
      EXPECT_EQ(fit_and_diagnose(rows).status, FitStatus::rank_too_small) << seed << " " << static_cast<int>(kind);
    }
}

TEST(FitStatus, InconsistentSign) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    PlantedRows rows(make_planted(Kind::phase, 1, seed), 3);
    for (double& y : rows.block.targets) y = -y;
    EXPECT_EQ(fit_and_diagnose(rows).status, FitStatus::inconsistent_sign) << seed;
  }
}

/// A fit to other targets has the residuals of a local minimum.
TEST(FitStatus, LocalMinimum) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed) {
    PlantedRows rows(make_planted(Kind::phase, 1, seed), 1.4);
    const PlantedRows others(make_planted(Kind::phase, 1, seed + 100), 1.4);
    const SignedFactors<double> start = SignedFactors<double>::of(others.planted.truth(), Diagonal::tied, 0);
    const NewtonFit fit = fit_gauss_newton(rows.observed(), rows.newton, rows.pool, &start);
    if (fit.is_exact) continue;
    const FitDiagnosis diagnosis = diagnose_fit(rows.observed(), rows.newton, fit.parameters, rows.pool);
    EXPECT_EQ(diagnosis.status, FitStatus::local_minimum) << seed;
  }
}

TEST(FitStatus, Outliers) {
  for (std::uint64_t seed = 1; seed <= instances; ++seed)
    for (const Kind kind : {Kind::gfm, Kind::phase}) {
      PlantedOptions problem = make_planted(kind, 1, seed);
      problem.noise = 0.1;
      problem.outliers = 0.05;
      PlantedRows rows(problem, 6);
      const FitDiagnosis diagnosis = fit_and_diagnose(rows);
      EXPECT_EQ(diagnosis.status, FitStatus::outliers) << seed << " " << static_cast<int>(kind);
      EXPECT_GT(diagnosis.outliers, 0);
    }
}

}  // namespace
}  // namespace dyad
