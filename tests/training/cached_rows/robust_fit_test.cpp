#include "training/cached_rows/robust_fit.h"

#include <gtest/gtest.h>

#include "planted_rows.h"
#include "training/cached_rows/residuals.h"

namespace dyad {
namespace {

using test::make_planted;
using test::PlantedRows;

bool has_heavy_tails_at_the_minimum(const PlantedOptions& problem, double rows_per_unknown) {
  PlantedRows rows(problem, rows_per_unknown);
  const SignedFactors<double> truth = SignedFactors<double>::of(rows.planted.truth(), Diagonal::tied, 0);
  const NewtonFit fit = fit_gauss_newton(rows.observed(), rows.newton, rows.pool, &truth);
  const Vector<double> residuals = compute_residuals(rows.observed(), fit.parameters, rows.pool);
  return has_heavy_tails(residuals, rows.observed(), rows.newton.shape.unknowns());
}

/// The leverages of phase retrieval vary most between rows. A scale without degrees of freedom gives 6% false alarms.
TEST(RobustFit, NormalNoiseHasLightTailsWithTwoRowsPerUnknown) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    PlantedOptions problem = make_planted(Kind::phase, 1, seed);
    problem.dim = 400;
    problem.noise = 0.01;
    EXPECT_FALSE(has_heavy_tails_at_the_minimum(problem, 2)) << seed;
  }
}

TEST(RobustFit, OutliersAreHeavyTails) {
  for (const Kind kind : {Kind::gfm, Kind::sensing, Kind::phase})
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      PlantedOptions problem = make_planted(kind, 1, seed);
      problem.noise = 0.1;
      problem.outliers = 0.05;
      EXPECT_TRUE(has_heavy_tails_at_the_minimum(problem, 6)) << seed << " " << static_cast<int>(kind);
    }
}

}  // namespace
}  // namespace dyad
