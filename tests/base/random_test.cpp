#include "base/random.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace dyad {
namespace {

constexpr int samples = 2'000'000;

TEST(Random, NormalHasExpectedMoments) {
  Random random(7, 0);
  double sums[7] = {};
  for (int i = 0; i < samples; ++i) {
    const double x = random.normal();
    double power = 1;
    for (double& sum : sums) {
      sum += power;
      power *= x;
    }
  }
  const double n = samples;
  const double expected[7] = {1, 0, 1, 0, 3, 0, 15};
  const double variance_of_power[7] = {0, 1, 2, 15, 96, 945, 10170};
  for (int p = 1; p <= 6; ++p) EXPECT_NEAR(sums[p] / n, expected[p], 5 * std::sqrt(variance_of_power[p] / n)) << p;
}

TEST(Random, NormalHasExpectedDistribution) {
  Random random(8, 0);
  const std::vector<double> edges{-4, -3.6541528853610088, -3, -2, -1, -0.1, 0, 0.1, 1, 2, 3, 3.6541528853610088, 4};
  std::vector<double> below(edges.size());
  for (int i = 0; i < samples; ++i) {
    const double x = random.normal();
    for (std::size_t e = 0; e < edges.size(); ++e) below[e] += x < edges[e] ? 1 : 0;
  }
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const double p = 0.5 * std::erfc(-edges[e] / std::sqrt(2.0));
    EXPECT_NEAR(below[e] / samples, p, 5 * std::sqrt(p * (1 - p) / samples)) << edges[e];
  }
}

TEST(Random, StreamsAreReproducibleAndUncorrelated) {
  Random first(1, 10);
  Random again(1, 10);
  Random adjacent(1, 11);
  Random other_seed(2, 10);
  double with_adjacent = 0;
  double with_other_seed = 0;
  constexpr int n = 100'000;
  for (int i = 0; i < n; ++i) {
    const double x = first.normal();
    ASSERT_EQ(x, again.normal());
    with_adjacent += x * adjacent.normal();
    with_other_seed += x * other_seed.normal();
  }
  EXPECT_LT(std::abs(with_adjacent), 5 * std::sqrt(n));
  EXPECT_LT(std::abs(with_other_seed), 5 * std::sqrt(n));
}

TEST(Random, FirstNumbersOfAdjacentStreamsAreUncorrelated) {
  double product = 0;
  constexpr int n = 100'000;
  for (std::uint64_t stream = 0; stream < n; ++stream)
    product += Random(1, stream).normal() * Random(1, stream + 1).normal();
  EXPECT_LT(std::abs(product), 5 * std::sqrt(n));
}

}  // namespace
}  // namespace dyad
