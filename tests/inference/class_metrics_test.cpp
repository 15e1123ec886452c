#include "inference/class_metrics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(ClassMetrics, EqualTheirDefinitions) {
  ClassMetricSums sums({"a", "b", "c", "absent"});
  const double rows[][4] = {{0.7, 0.2, 0.1, 0}, {0.1, 0.6, 0.3, 0}, {0.3, 0.4, 0.3, 0}, {0.2, 0.1, 0.7, 0}};
  const std::size_t targets[] = {0, 1, 0, 2};
  const double weights[] = {1, 2, 1, 1};
  double loss = 0;
  for (int i = 0; i < 4; ++i) {
    sums.add(targets[i], rows[i], weights[i]);
    loss -= weights[i] * std::log(rows[i][targets[i]]) / 5;
  }
  const Metrics metrics = sums.metrics();
  EXPECT_NEAR(metrics.logloss, loss, 1e-12);
  EXPECT_NEAR(metrics.accuracy, 4.0 / 5, 1e-12);
  EXPECT_NEAR(metrics.constant_loss, -(2 * 0.4 * std::log(0.4) + 0.2 * std::log(0.2)), 1e-12);
  EXPECT_EQ(metrics.weight, 5);
  ASSERT_EQ(metrics.classes.size(), 4);
  EXPECT_NEAR(metrics.classes[0].recall, 0.5, 1e-12);
  EXPECT_NEAR(metrics.classes[0].precision, 1, 1e-12);
  EXPECT_NEAR(metrics.classes[1].precision, 2.0 / 3, 1e-12);
  EXPECT_EQ(metrics.classes[3].weight, 0);
  // Every row of each class has a larger probability of the class than the other rows.
  EXPECT_NEAR(metrics.auc, 1, 1e-3);
}

}  // namespace
}  // namespace dyad
