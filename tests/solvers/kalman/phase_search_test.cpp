#include "solvers/kalman/phase_search.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_rows;

TEST(PhaseSearch, BestCandidateIsCloseForAllSeeds) {
  constexpr Index dim = 60;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed, 7);
    const RowMajorMatrix<double> a = random_orthonormal<double>(random, dim, 1);
    auto rows = random_rows<double>(12 * dim, dim, seed);
    for (Index i = 0; i < rows.X.rows(); ++i)
      rows.targets[static_cast<std::size_t>(i)] = 9 * std::pow(rows.X.row(i) * a.col(0), 2);
    PhaseSearch<double> search(dim, seed);
    Index row = 0;
    while (!search.is_done() && row < rows.X.rows()) search.learn(rows.dense().slice(row++, 1));
    EXPECT_TRUE(search.is_done());
    const Model<double> best = search.best_model();
    EXPECT_GT(std::abs(a.col(0).dot(as_vector(best.factors))), 0.9) << seed;
    EXPECT_NEAR(best.spectrum[0], 9, 3);
    EXPECT_LT(search.residual_variance(), 0.3 * 2 * 81);  // the variance of the targets 9 (a'x)^2 is 2 * 81
  }
}

TEST(PhaseSearch, LearnsAfterGrowing) {
  PhaseSearch<double> search(5, 1);
  const auto narrow = random_rows<double>(50, 5, 1);
  search.learn(narrow.dense());
  search.grow(9);
  const auto wide = random_rows<double>(50, 9, 2);
  search.learn(wide.dense());
  EXPECT_EQ(search.best_model().dim(), 9);
  EXPECT_TRUE(search.best_model().is_finite());
}

TEST(PhaseSearch, ArchivedSearchContinuesBitIdentically) {
  const auto rows = random_rows<double>(100, 10, 1);
  PhaseSearch<double> search(10, 1);
  search.learn(rows.dense().slice(0, 50));
  Archive saved;
  search.archive(saved);
  PhaseSearch<double> other(10, 99);
  Archive loaded(saved.arrays());
  other.archive(loaded);
  search.learn(rows.dense().slice(50, 50));
  other.learn(rows.dense().slice(50, 50));
  EXPECT_EQ(search.best_model().factors, other.best_model().factors);
}

}  // namespace
}  // namespace dyad
