#include "solvers/sampling/random_draws.h"

#include <cmath>

#include <gtest/gtest.h>

namespace dyad {
namespace {

/// Sample mean and variance of `count` draws, with the standard errors of both.
struct DrawMoments {
  double mean = 0;
  double mean_error = 0;
  double variance = 0;
  double variance_error = 0;
};

template <typename Draw>
DrawMoments moments_of(Index count, Draw&& draw) {
  std::vector<double> draws;
  double sum = 0;
  for (Index i = 0; i < count; ++i) sum += draws.emplace_back(draw());
  DrawMoments result;
  const auto n = static_cast<double>(count);
  result.mean = sum / n;
  double fourth = 0;
  for (const double x : draws) {
    result.variance += std::pow(x - result.mean, 2) / n;
    fourth += std::pow(x - result.mean, 4) / n;
  }
  result.mean_error = std::sqrt(result.variance / n);
  result.variance_error = std::sqrt((fourth - result.variance * result.variance) / n);
  return result;
}

TEST(GammaDraw, HasExactMoments) {
  for (const double shape : {0.3, 1.0, 4.5, 200.0}) {
    Random random(1, static_cast<std::uint64_t>(10 * shape));
    const DrawMoments moments = moments_of(40000, [&] { return draw_gamma(random, shape); });
    EXPECT_NEAR(moments.mean, shape, 5 * moments.mean_error) << shape;
    EXPECT_NEAR(moments.variance, shape, 5 * moments.variance_error) << shape;
  }
}

TEST(PolyaGammaDraw, HasExactMoments) {
  for (const double weight : {0.4, 1.0, 2.5, 40.0})
    for (const double tilt : {0.0, 0.7, -3.0, 12.0, 60.0}) {
      Random random(2, static_cast<std::uint64_t>(1000 * weight + 10 * (tilt + 20)));
      const DrawMoments moments = moments_of(20000, [&] { return draw_polya_gamma(random, weight, tilt); });
      EXPECT_NEAR(moments.mean, polya_gamma_mean(weight, tilt), 5 * moments.mean_error) << weight << " " << tilt;
      EXPECT_NEAR(moments.variance, polya_gamma_variance(weight, tilt), 5 * moments.variance_error)
          << weight << " " << tilt;
    }
}

/// The density of PG(1, z) is proportional to that of PG(1, 0) times exp(-z^2 omega / 2), so that
/// E[exp(-z^2 omega / 2)] = 1 / cosh(z / 2) for omega ~ PG(1, 0).
TEST(PolyaGammaDraw, HasTheLaplaceTransformOfItsDefinition) {
  for (const double z : {0.5, 2.0, 6.0}) {
    Random random(3, static_cast<std::uint64_t>(z * 10));
    const DrawMoments moments =
        moments_of(40000, [&] { return std::exp(-z * z * draw_polya_gamma(random, 1, 0) / 2); });
    EXPECT_NEAR(moments.mean, 1 / std::cosh(z / 2), 5 * moments.mean_error);
  }
}

TEST(PolyaGammaMoments, AreContinuousAtSmallTilts) {
  EXPECT_NEAR(polya_gamma_variance(1, 0.0499), polya_gamma_variance(1, 0.0501), 1e-5);
  EXPECT_NEAR(polya_gamma_variance(1, 1e-3), 1.0 / 24, 1e-6);
  EXPECT_NEAR(polya_gamma_mean(1, 1e-5), 0.25, 1e-8);
  EXPECT_NEAR(polya_gamma_variance(1, 500), 1.0 / (2 * 500 * 500.0 * 500), 1e-12);
}

TEST(DrawRandom, DiffersBySweepPurposeAndIndex) {
  const std::uint64_t first = draw_random(1, 2, DrawPurpose::parameters, 3).bits();
  EXPECT_EQ(draw_random(1, 2, DrawPurpose::parameters, 3).bits(), first);
  EXPECT_NE(draw_random(2, 2, DrawPurpose::parameters, 3).bits(), first);
  EXPECT_NE(draw_random(1, 3, DrawPurpose::parameters, 3).bits(), first);
  EXPECT_NE(draw_random(1, 2, DrawPurpose::noise, 3).bits(), first);
  EXPECT_NE(draw_random(1, 2, DrawPurpose::parameters, 4).bits(), first);
}

}  // namespace
}  // namespace dyad
