#include "training/class_temperature.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Rows whose classes are drawn from the softmax of `temperature` times random log-odds.
HeldOutClasses drawn_classes(Index count, Index classes, double temperature) {
  Random random(3, 0);
  HeldOutClasses rows;
  rows.classes = classes;
  for (Index i = 0; i < count; ++i) {
    Index best = 0;
    double best_value = 0;
    for (Index c = 0; c < classes; ++c) {
      rows.log_odds.push_back(2 * random.normal());
      // The largest of f_c + Gumbel noise is a draw from the softmax.
      const double value = temperature * rows.log_odds.back() - std::log(-std::log(random.uniform()));
      if (c == 0 || value > best_value) {
        best = c;
        best_value = value;
      }
    }
    rows.targets.push_back(best);
    rows.weights.push_back(1);
  }
  return rows;
}

TEST(ClassTemperature, RecoversTemperature) {
  for (const double temperature : {0.3, 1.0, 3.0}) {
    const ClassTemperature fitted = fit_temperature(drawn_classes(20'000, 4, temperature), {});
    EXPECT_NEAR(fitted.value, temperature, 5 / std::sqrt(fitted.precision));
    EXPECT_GT(fitted.precision, 500);
  }
}

TEST(ClassTemperature, WithoutRowsIsThePrior) {
  HeldOutClasses no_rows;
  no_rows.classes = 3;
  const ClassTemperature fitted = fit_temperature(no_rows, {1.5, 7});
  EXPECT_NEAR(fitted.value, 1.5, 1e-12);
  EXPECT_EQ(fitted.precision, 7);
}

TEST(ClassTemperature, MinimizesPenalizedLogLoss) {
  const HeldOutClasses rows = drawn_classes(300, 3, 0.7);
  const ClassTemperature fitted = fit_temperature(rows, {});
  const auto objective = [&](double t) { return 300 * class_log_loss(rows, t) + 0.5 * 4 * (t - 1) * (t - 1); };
  for (const double step : {-0.01, 0.01}) EXPECT_GT(objective(fitted.value + step), objective(fitted.value));
}

TEST(ClassTemperature, WeightsAreRepetitions) {
  HeldOutClasses rows = drawn_classes(50, 3, 1);
  HeldOutClasses repeated = rows;
  for (std::size_t i = 0; i < rows.targets.size(); ++i) rows.weights[i] = 2;
  repeated.log_odds.insert(repeated.log_odds.end(), rows.log_odds.begin(), rows.log_odds.end());
  repeated.targets.insert(repeated.targets.end(), rows.targets.begin(), rows.targets.end());
  repeated.weights.resize(repeated.targets.size(), 1.0);
  EXPECT_NEAR(fit_temperature(rows, {}).value, fit_temperature(repeated, {}).value, 1e-12);
}

}  // namespace
}  // namespace dyad
