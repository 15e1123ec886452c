#include <dyad/statistics.h>

#include <cmath>

#include <gtest/gtest.h>

#include <dyad/data_error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Gaussian rows, of which any part can be looked at.
struct Parts {
  static constexpr Index dim = 6;
  std::vector<double> x;
  std::vector<double> y;

  explicit Parts(Index count) {
    Random random(3, 7);
    for (Index i = 0; i < count; ++i) {
      for (Index j = 0; j < dim; ++j) x.push_back(random.normal());
      const double* row = x.data() + i * dim;
      y.push_back(40 + 10 * (row[0] - 2 * row[1] * row[2] + row[3] * row[3]) + random.normal());
    }
  }

  [[nodiscard]] MemoryRows from(Index first, Index count) const {
    MemoryRows rows;
    rows.count = count;
    rows.features = MemoryMatrix{dim, x.data() + first * dim, dim, 1};
    rows.targets = std::span(y).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    return rows;
  }

  [[nodiscard]] std::string first_model(Solver solver = Solver::moment, Precision precision = {}) const {
    const MemoryRows sample = from(0, 500);
    TrainOptions options;
    options.data.memory = &sample;
    options.rank = 3;
    options.solver = solver;
    options.precision = precision;
    return train(options).model_bytes;
  }

  [[nodiscard]] double rmse(const std::string& model) const {
    const MemoryRows all = from(0, static_cast<Index>(y.size()));
    std::vector<double> values(y.size());
    (void)Predictor::from_bytes(model).predict(all, values);
    double squares = 0;
    for (std::size_t i = 0; i < y.size(); ++i) squares += (values[i] - y[i]) * (values[i] - y[i]);
    return std::sqrt(squares / static_cast<double>(y.size()));
  }
};

Statistics gathered(const Parts& data, const std::string& model, const std::vector<Index>& ends) {
  Index first = 0;
  std::optional<Statistics> sum;
  for (const Index end : ends) {
    // As if it had travelled.
    const Statistics part = Statistics::from_bytes(partial_statistics(model, data.from(first, end - first)).to_bytes());
    if (sum)
      *sum += part;
    else
      sum = part;
    first = end;
  }
  return *sum;
}

class StatisticsOf : public testing::TestWithParam<Precision> {};

TEST_P(StatisticsOf, PartsGiveTheModelOfAllRowsAndItIsAGoodOne) {
  const Parts data(20000);
  std::string whole = data.first_model(Solver::moment, GetParam());
  std::string parted = whole;
  StatisticsApplied last;
  for (int round = 0; round < 16; ++round) {
    whole = apply_statistics(whole, gathered(data, whole, {20000})).model;
    last = apply_statistics(parted, gathered(data, parted, {3000, 3001, 12000, 20000}));
    parted = last.model;
  }
  const auto a = Predictor::from_bytes(whole).model();
  const auto b = Predictor::from_bytes(parted).model();
  const double tolerance = GetParam() == Precision::double_precision ? 1e-9 : 1e-3;
  EXPECT_NEAR(a.intercept, b.intercept, tolerance);
  for (std::size_t i = 0; i < a.weights.size(); ++i) EXPECT_NEAR(a.weights[i], b.weights[i], tolerance);
  for (std::size_t i = 0; i < a.spectrum.size(); ++i) EXPECT_NEAR(a.spectrum[i], b.spectrum[i], tolerance);
  EXPECT_GT(last.steps_taken, 3);
  EXPECT_LT(data.rmse(parted), 1.05);  // of which 1 is noise
  EXPECT_NEAR(last.rmse, data.rmse(parted), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Precisions, StatisticsOf,
                         testing::Values(Precision::double_precision, Precision::single_precision),
                         [](const auto& given) {
                           return given.param == Precision::double_precision ? "double" : "single";
                         });

TEST(StatisticsTest, BelongToOneModelAndOneRound) {
  const Parts data(2000);
  const std::string model = data.first_model();
  const Statistics first = gathered(data, model, {2000});
  const std::string next = apply_statistics(model, first).model;
  Statistics second = gathered(data, next, {2000});
  EXPECT_THROW((void)apply_statistics(next, first), std::invalid_argument);
  EXPECT_THROW(second += first, std::invalid_argument);
}

TEST(StatisticsTest, OtherSolversHaveNone) {
  const Parts data(600);
  EXPECT_THROW((void)partial_statistics(data.first_model(Solver::kalman), data.from(0, 600)), std::invalid_argument);
}

TEST(StatisticsTest, WhatAreNoneIsSaid) {
  const Parts data(600);
  const std::string model = data.first_model();
  const std::string good = gathered(data, model, {600}).to_bytes();
  EXPECT_THROW((void)Statistics::from_bytes("nothing"), DataError);
  EXPECT_THROW((void)Statistics::from_bytes(model), DataError);
  EXPECT_THROW((void)Statistics::from_bytes(good.substr(0, good.size() - 8)), DataError);
  Statistics changed = Statistics::from_bytes(good);
  changed.sums.erase("target");
  EXPECT_THROW((void)apply_statistics(model, changed), DataError);
  Statistics empty = Statistics::from_bytes(good);
  empty.sums["rows"] = {0};
  EXPECT_THROW((void)apply_statistics(model, empty), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
