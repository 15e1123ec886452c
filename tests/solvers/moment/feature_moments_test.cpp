#include "solvers/moment/feature_moments.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "recovery/planted_problem.h"
#include "support.h"

namespace dyad {
namespace {

/// Moments of one column by their definitions.
struct BruteForce {
  double mean, variance, skewness, kurtosis;

  explicit BruteForce(const Eigen::ArrayXd& x)
      : mean(x.mean()),
        variance((x - mean).square().mean()),
        skewness((x - mean).cube().mean() / std::pow(variance, 1.5)),
        kurtosis((x - mean).square().square().mean() / (variance * variance)) {}
};

TEST(FeatureMoments, EqualBruteForceMomentsInBothLayouts) {
  auto rows = test::random_rows<double>(500, 4, 1, 0.7);
  rows.X.col(1) = rows.X.col(1).cwiseAbs2();
  const test::OwnedRows<double> owned(rows.X, rows.targets);
  for (const auto& view : {owned.dense(), owned.sparse()}) {
    FeatureMoments moments(4);
    moments.add(view);
    EXPECT_EQ(moments.weight(), 500);
    for (Index j = 0; j < 4; ++j) {
      const BruteForce expected(owned.X.col(j).array());
      EXPECT_NEAR(moments.mean()[j], expected.mean, 1e-12);
      EXPECT_NEAR(moments.variance()[j], expected.variance, 1e-12);
      EXPECT_NEAR(moments.skewness()[j], expected.skewness, 1e-10);
      EXPECT_NEAR(moments.kurtosis()[j], expected.kurtosis, 1e-10);
    }
  }
}

TEST(FeatureMoments, MergeEqualsOnePass) {
  const auto rows = test::random_rows<float>(301, 3, 2);
  FeatureMoments whole(3);
  whole.add(rows.dense());
  FeatureMoments merged(3);
  for (const Index first : {0, 1, 100}) {
    FeatureMoments part(3);
    part.add(rows.dense().slice(first, first == 0 ? 1 : first == 1 ? 99 : 201));
    merged += part;
  }
  EXPECT_EQ(merged.weight(), whole.weight());
  EXPECT_LT((merged.skewness() - whole.skewness()).abs().maxCoeff(), 1e-12);
  EXPECT_LT((merged.kurtosis() - whole.kurtosis()).abs().maxCoeff(), 1e-12);
}

TEST(FeatureMoments, DeterminantIsZeroForConstantAndTwoValuedFeatures) {
  RowMajorMatrix<double> X(6, 2);
  X << 3, 0, 3, 1, 3, 1, 3, 0, 3, 0, 3, 0;
  const test::OwnedRows<double> rows(X, std::vector<double>(6));
  FeatureMoments moments(2);
  moments.add(rows.dense());
  const Eigen::ArrayXd determinant = moments.kurtosis() - 1 - moments.skewness().square();
  EXPECT_LT(determinant.abs().maxCoeff(), 1e-12);
}

TEST(FeatureMoments, IsGaussianDetectsOtherDistributions) {
  const auto is_gaussian = [](FeatureDistribution features, std::uint64_t seed, Index rows) {
    PlantedOptions options;
    options.dim = 20;
    options.rank = 1;
    options.features = features;
    options.seed = seed;
    ThreadPool pool(2);
    DenseBlock<double> block;
    PlantedProblem(options).generate(0, rows, pool, block);
    FeatureMoments moments(20);
    moments.add(block.view());
    return moments.is_gaussian();
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_TRUE(is_gaussian(FeatureDistribution::gaussian, seed, 300)) << seed;
    EXPECT_TRUE(is_gaussian(FeatureDistribution::gaussian, seed, 5000)) << seed;
    for (const FeatureDistribution features :
         {FeatureDistribution::uniform, FeatureDistribution::skewed, FeatureDistribution::rademacher})
      EXPECT_FALSE(is_gaussian(features, seed, 300)) << seed;
  }
}

}  // namespace
}  // namespace dyad
