#include <dyad/distributed.h>

#include <cmath>

#include <gtest/gtest.h>

#include <dyad/error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Rows with normal features and a quadratic target, in units of 10, with noise of standard deviation 1.
struct GaussianRows {
  static constexpr Index dim = 6;
  std::vector<double> x;
  std::vector<double> y;

  explicit GaussianRows(Index count) {
    Random random(3, 7);
    for (Index i = 0; i < count; ++i) {
      for (Index j = 0; j < dim; ++j) x.push_back(random.normal());
      const double* row = x.data() + i * dim;
      y.push_back(40 + 10 * (row[0] - 2 * row[1] * row[2] + row[3] * row[3]) + random.normal());
    }
  }

  [[nodiscard]] DatasetView rows(Index first, Index count) const {
    DatasetView rows;
    rows.count = count;
    rows.features = MatrixView{dim, x.data() + first * dim, dim, 1};
    rows.targets = std::span(y).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    return rows;
  }

  [[nodiscard]] std::string first_model(Solver solver = Solver::moment, Precision precision = {}) const {
    const DatasetView sample = rows(0, 500);
    TrainOptions options;
    options.data.dataset = &sample;
    options.rank = 3;
    options.solver = solver;
    options.precision = precision;
    return train(options).model_bytes;
  }

  [[nodiscard]] double rmse(const std::string& model) const {
    const DatasetView all = rows(0, static_cast<Index>(y.size()));
    std::vector<double> values(y.size());
    (void)Predictor::from_bytes(model).predict(all, values);
    double squares = 0;
    for (std::size_t i = 0; i < y.size(); ++i) squares += (values[i] - y[i]) * (values[i] - y[i]);
    return std::sqrt(squares / static_cast<double>(y.size()));
  }
};

Statistics summed_statistics(const GaussianRows& data, const std::string& model, const std::vector<Index>& ends) {
  Index first = 0;
  std::optional<Statistics> sum;
  for (const Index end : ends) {
    // Serialized, as between machines.
    const Statistics statistics =
        Statistics::from_bytes(partial_statistics(model, data.rows(first, end - first)).to_bytes());
    if (sum)
      *sum += statistics;
    else
      sum = statistics;
    first = end;
  }
  return *sum;
}

class StatisticsPrecision : public testing::TestWithParam<Precision> {};

TEST_P(StatisticsPrecision, SumOfPartitionsEqualsAllRows) {
  const GaussianRows data(20000);
  std::string whole = data.first_model(Solver::moment, GetParam());
  std::string partitioned = whole;
  StatisticsUpdate last;
  for (int round = 0; round < 16; ++round) {
    whole = apply_statistics(whole, summed_statistics(data, whole, {20000})).model;
    last = apply_statistics(partitioned, summed_statistics(data, partitioned, {3000, 3001, 12000, 20000}));
    partitioned = last.model;
  }
  const auto a = Predictor::from_bytes(whole).model();
  const auto b = Predictor::from_bytes(partitioned).model();
  const double tolerance = GetParam() == Precision::double_precision ? 1e-9 : 1e-3;
  EXPECT_NEAR(a.intercept, b.intercept, tolerance);
  for (std::size_t i = 0; i < a.weights.size(); ++i) EXPECT_NEAR(a.weights[i], b.weights[i], tolerance);
  for (std::size_t i = 0; i < a.spectrum.size(); ++i) EXPECT_NEAR(a.spectrum[i], b.spectrum[i], tolerance);
  EXPECT_GT(last.steps_taken, 3);
  EXPECT_LT(data.rmse(partitioned), 1.05);  // the noise is 1
  EXPECT_NEAR(last.rmse, data.rmse(partitioned), 0.01);
}

INSTANTIATE_TEST_SUITE_P(Precisions, StatisticsPrecision,
                         testing::Values(Precision::double_precision, Precision::single_precision),
                         [](const auto& given) {
                           return given.param == Precision::double_precision ? "double" : "single";
                         });

TEST(StatisticsTest, BelongToOneModel) {
  const GaussianRows data(2000);
  const std::string model = data.first_model();
  const Statistics first = summed_statistics(data, model, {2000});
  const std::string next = apply_statistics(model, first).model;
  Statistics second = summed_statistics(data, next, {2000});
  EXPECT_THROW((void)apply_statistics(next, first), std::invalid_argument);
  EXPECT_THROW(second += first, std::invalid_argument);
}

TEST(StatisticsTest, OtherSolversAreRejected) {
  const GaussianRows data(600);
  EXPECT_THROW((void)partial_statistics(data.first_model(Solver::kalman), data.rows(0, 600)), std::invalid_argument);
}

TEST(StatisticsTest, InvalidBytesAreRejected) {
  const GaussianRows data(600);
  const std::string model = data.first_model();
  const std::string good = summed_statistics(data, model, {600}).to_bytes();
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
