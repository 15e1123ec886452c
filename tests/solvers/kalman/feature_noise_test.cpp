#include "solvers/kalman/feature_noise.h"

#include <array>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Residuals of rows with one of two features, whose noise variances are `variances`, and the estimates.
struct TwoFeatures {
  FeatureNoise noise{1, 100};
  std::array<double, 2> log_multipliers{};
  std::array<double, 2> uncertainties{FeatureNoise::log_variance, FeatureNoise::log_variance};

  TwoFeatures(std::array<double, 2> variances, double common, int rows) {
    Random random(1, 0);
    for (int i = 0; i < rows; ++i) {
      const std::size_t j = i % 2 == 0 ? 0 : 1;
      const double residual = std::sqrt(variances[j]) * random.normal();
      const FeatureNoise::Step step =
          noise.observe(residual * residual, 0, log_multipliers[j], uncertainties[j], false, common);
      log_multipliers[j] += uncertainties[j] * step.mean;
      uncertainties[j] -= uncertainties[j] * uncertainties[j] * step.precision;
    }
  }
};

/// The logarithm of a variance that is estimated from n residuals has the standard error sqrt(2/n) = 0.02 for 5,000.
/// The averaging window of s2 adds sqrt(2/600) = 0.06, which both features share.
TEST(FeatureNoise, RecoversTheVarianceOfEachFeature) {
  const TwoFeatures rows({0.5, 2}, 1.25, 10000);
  EXPECT_NEAR(std::log(rows.noise.value(rows.log_multipliers[0], false) / 0.5), 0, 5 * 0.063);
  EXPECT_NEAR(std::log(rows.noise.value(rows.log_multipliers[1], false) / 2), 0, 5 * 0.063);
  EXPECT_NEAR(rows.log_multipliers[1] - rows.log_multipliers[0], std::log(4), 5 * 0.03);
  EXPECT_TRUE(rows.noise.is_better());
}

TEST(FeatureNoise, EqualVariancesAreNotBetter) {
  const TwoFeatures rows({1, 1}, 1, 10000);
  EXPECT_FALSE(rows.noise.is_better());
}

TEST(FeatureNoise, RowsWithNewFeaturesHaveTheirOwnMultiplier) {
  FeatureNoise noise(1, 100);
  Random random(2, 0);
  for (int i = 0; i < 20000; ++i) {
    const bool is_new = i % 4 == 0;
    const double residual = (is_new ? 2 : 1) * random.normal();
    (void)noise.observe(residual * residual, 0, 0, 0, is_new, 1);
  }
  EXPECT_NEAR(std::log(noise.value(0, true) / noise.value(0, false)), std::log(4), 5 * 0.03);
}

}  // namespace
}  // namespace dyad
