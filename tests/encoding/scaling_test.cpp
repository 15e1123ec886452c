#include "encoding/scaling.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

std::vector<double> normal_values(double mean, double deviation, int count = 2000) {
  Random random(1, 0);
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(mean + deviation * random.normal());
  return values;
}

TEST(Scaling, CentersAndScales) {
  const std::vector<double> values = normal_values(1e6, 3);
  const Scaling scaling = robust_scaling(values);
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += scaling.apply(value);
    squares += scaling.apply(value) * scaling.apply(value);
  }
  EXPECT_NEAR(sum / 2000, 0, 1e-9);
  EXPECT_NEAR(squares / 2000, 1, 1e-9);
}

TEST(Scaling, IgnoresOutliers) {
  std::vector<double> values = normal_values(5, 2);
  const Scaling without = robust_scaling(values);
  for (const double outlier : {1e9, -1e300, 1.7e308, 4e5}) values.push_back(outlier);
  const Scaling with = robust_scaling(values);
  EXPECT_NEAR(with.center, without.center, 1e-12 * std::abs(without.center));
  EXPECT_NEAR(with.scale, without.scale, 1e-12 * without.scale);
  // Clipped to the larger of 6 standard deviations and 1.5 times the largest distance.
  EXPECT_NEAR(with.apply(1e300), 6, 3);
  EXPECT_NEAR(with.apply(-1e300), -6, 3);
}

TEST(Scaling, DoesNotClipRareBinaryValues) {
  std::vector<double> values(4000, 0.0);
  for (int i = 0; i < 3; ++i) values[static_cast<std::size_t>(i) * 1000] = 1;
  const Scaling scaling = robust_scaling(values);
  const double per_unit = scaling.apply(1) - scaling.apply(0);
  EXPECT_NEAR(per_unit, 1 / scaling.scale, 1e-9);
  EXPECT_GT(scaling.scale, 0.01);
}

TEST(Scaling, ScaleIsOneForConstantOrEmptyColumns) {
  for (const auto& values : {std::vector<double>{}, std::vector<double>(10, 7.0), std::vector<double>(3, 1e-320),
                             std::vector<double>(1000, 0.1)}) {
    const Scaling scaling = robust_scaling(values);
    EXPECT_TRUE(scaling.is_valid());
    EXPECT_EQ(scaling.scale, 1);
    if (!values.empty()) {
      EXPECT_NEAR(scaling.apply(values.front()), 0, 1e-9);
    }
  }
}

TEST(Scaling, IsInvariantUnderAffineMapsUpToSign) {
  const std::vector<double> values = normal_values(0, 1);
  std::vector<double> moved;
  for (const double value : values) moved.push_back(100 - 7 * value);
  const Scaling scaling = robust_scaling(values);
  const Scaling of_moved = robust_scaling(moved);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_NEAR(scaling.apply(values[i]), -of_moved.apply(moved[i]), 1e-9);
}

}  // namespace
}  // namespace dyad
