#include "inference/metrics.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "likelihood/logistic.h"
#include "training/state/calibration.h"

namespace dyad {
namespace {

TEST(MetricSums, RegressionMetricsEqualDefinitions) {
  Random random(1, 0);
  MetricSums sums(Task::regression);
  std::vector<std::array<double, 3>> rows;
  for (int i = 0; i < 500; ++i) {
    const double y = 1e4 + random.normal();
    rows.push_back({y, y + 0.3 * random.normal() + 0.1, random.uniform()});
    sums.add(rows.back()[0], rows.back()[1], rows.back()[2]);
  }
  double weight = 0;
  double mean = 0;
  for (const auto& [y, f, w] : rows) weight += w;
  for (const auto& [y, f, w] : rows) mean += w * y / weight;
  double squares = 0;
  double absolute = 0;
  double squared_deviations = 0;
  for (const auto& [y, f, w] : rows) {
    squares += w * (y - f) * (y - f);
    absolute += w * std::abs(y - f);
    squared_deviations += w * (y - mean) * (y - mean);
  }
  const Metrics metrics = sums.metrics();
  EXPECT_NEAR(metrics.rmse, std::sqrt(squares / weight), 1e-12);
  EXPECT_NEAR(metrics.mae, absolute / weight, 1e-12);
  EXPECT_NEAR(metrics.r2, 1 - squares / squared_deviations, 1e-9);
  EXPECT_NEAR(metrics.constant_loss, std::sqrt(squared_deviations / weight), 1e-9);
}

TEST(MetricSums, ClassificationMetricsEqualDefinitions) {
  Random random(1, 0);
  MetricSums sums(Task::classification);
  std::vector<std::pair<double, double>> rows;
  for (int i = 0; i < 800; ++i) {
    const double score = 3 * random.normal();
    rows.emplace_back(random.uniform() < logistic(score) ? 1 : 0, logistic(0.8 * score + 0.5));
    sums.add(rows.back().first, rows.back().second, 1);
  }
  double loss = 0;
  double correct = 0;
  double concordant = 0;
  double pairs = 0;
  for (const auto& [y, p] : rows) {
    loss -= std::log(y > 0.5 ? p : 1 - p) / 800;
    correct += (y > 0.5) == (p > 0.5) ? 1.0 / 800 : 0;
    for (const auto& [other_y, other_p] : rows)
      if (y > other_y) {
        pairs += 1;
        concordant += p > other_p ? 1 : 0;
      }
  }
  const Metrics metrics = sums.metrics();
  EXPECT_NEAR(metrics.logloss, loss, 1e-12);
  EXPECT_NEAR(metrics.accuracy, correct, 1e-12);
  EXPECT_NEAR(metrics.auc, concordant / pairs, 1e-3);
}

TEST(MetricSums, DegenerateRowsGiveFiniteMetrics) {
  MetricSums one_class(Task::classification);
  for (int i = 0; i < 5; ++i) one_class.add(1, 0.9, 1);
  EXPECT_EQ(one_class.metrics().auc, 0.5);
  EXPECT_EQ(one_class.metrics().constant_loss, 0);
  EXPECT_TRUE(one_class.is_target_constant());
  MetricSums constant(Task::regression);
  for (int i = 0; i < 5; ++i) constant.add(7, 7, 1);
  constant.add(1e9, 0, 0);  // weight 0 has no effect
  EXPECT_EQ(constant.metrics().r2, 0);
  EXPECT_EQ(constant.metrics().rmse, 0);
  EXPECT_EQ(MetricSums(Task::regression).metrics().rmse, 0);
  MetricSums certain(Task::classification);
  certain.add(1, 0, 1);
  certain.add(0, 1, 1);
  EXPECT_TRUE(std::isfinite(certain.metrics().logloss));
}

TEST(Calibration, EstimatesLogOdds) {
  Random random(1, 0);
  Calibration calibration;
  for (int i = 0; i < 200000; ++i) {
    const double score = random.normal() * 0.5;
    calibration.learn(score, random.uniform() < logistic(-1.5 + 4 * score) ? 1 : 0, 1);
  }
  EXPECT_NEAR(calibration.intercept(), -1.5, 0.05);
  EXPECT_NEAR(calibration.slope(), 4, 0.1);
}

TEST(Calibration, UninformativeScoresGivePriorLogLoss) {
  Random random(1, 0);
  Calibration calibration;
  double loss = 0;
  for (int i = 0; i < 50000; ++i) {
    const double score = random.normal();
    const double y = random.uniform() < 0.1 ? 1 : 0;
    if (i >= 10000) loss += log_loss(y, logistic(calibration.log_odds(score))) / 40000;
    calibration.learn(score, y, 1);
  }
  const double binary_entropy = -0.1 * std::log(0.1) - 0.9 * std::log(0.9);
  EXPECT_LT(loss, binary_entropy * 1.02);
  EXPECT_TRUE(std::isfinite(calibration.intercept()));
}

}  // namespace
}  // namespace dyad
