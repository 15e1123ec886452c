#include <dyad/distributed.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <dyad/error.h>
#include <dyad/predictor.h>
#include <dyad/train.h>

#include "base/random.h"

namespace dyad {
namespace {

/// Sparse rows that are divided among any number of workers. A model of the rows with the smallest hashes is the start
/// of the driver.
class PartitionedRows {
 public:
  PartitionedRows(Index count, Index dim, Index entries, bool classes, double noise) : dim_(dim), classes_(classes) {
    Random random(11, 3);
    std::vector<double> w(static_cast<std::size_t>(dim));
    std::vector<double> a(static_cast<std::size_t>(dim));
    for (double& value : w) value = 0.5 * random.normal();
    for (double& value : a) value = 0.7 * random.normal();
    for (Index i = 0; i < count; ++i) {
      double linear = 0;
      double p = 0;
      double diagonal = 0;
      const Index field = dim / entries;
      for (Index e = 0; e < entries; ++e) {
        const auto j =
            static_cast<std::size_t>(e * field + static_cast<Index>(random.uniform() * static_cast<double>(field)));
        const double x = random.normal();
        columns_.push_back(static_cast<std::int32_t>(j));
        values_.push_back(x);
        linear += w[j] * x;
        p += a[j] * x;
        diagonal += a[j] * x * a[j] * x;
      }
      offsets_.push_back(static_cast<std::int64_t>(columns_.size()));
      const double f = 1 + linear - (p * p - diagonal);
      targets_.push_back(classes ? (random.uniform() < 1 / (1 + std::exp(-f)) ? 1.0 : 0.0)
                                 : f + noise * random.normal());
      weights_.push_back(1 + static_cast<double>(i % 3));
    }
  }

  [[nodiscard]] Index count() const { return static_cast<Index>(targets_.size()); }

  [[nodiscard]] DatasetView rows(Index first, Index count) const {
    DatasetView rows;
    rows.count = count;
    rows.features = SparseView{dim_, offsets_.data() + first, columns_.data(), values_.data()};
    const auto at = static_cast<std::size_t>(first);
    const auto size = static_cast<std::size_t>(count);
    rows.targets = std::span(targets_).subspan(at, size);
    rows.weights = std::span(weights_).subspan(at, size);
    if (classes_) rows.labels = {"no", "yes"};
    return rows;
  }

  /// Model of the given share of the rows, those with the smallest hashes.
  [[nodiscard]] std::string start_model(double share, std::optional<Solver> solver = {}) const {
    const std::vector<std::uint64_t> hashes = hash_rows(rows(0, count()));
    PartitionedRows sample(0, dim_, 1, classes_, 0);
    for (Index i = 0; i < count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (static_cast<double>(hashes[at]) >= share * 0x1p64) continue;
      for (auto e = offsets_[at]; e < offsets_[at + 1]; ++e) {
        sample.columns_.push_back(columns_[static_cast<std::size_t>(e)]);
        sample.values_.push_back(values_[static_cast<std::size_t>(e)]);
      }
      sample.offsets_.push_back(static_cast<std::int64_t>(sample.columns_.size()));
      sample.targets_.push_back(targets_[at]);
      sample.weights_.push_back(weights_[at]);
    }
    const DatasetView first = sample.rows(0, sample.count());
    TrainOptions options;
    options.data.dataset = &first;
    options.rank = 2;
    options.solver = solver;
    if (!solver) options.passes = 1;
    return train(options).model_bytes;
  }

  /// Trains with the given number of workers, each of which reads its rows in blocks.
  [[nodiscard]] DistributedSummary train_on(Index workers, Solver solver, double share = 0.2) const {
    const std::string base = start_workers(start_model(share));
    DistributedOptions options;
    options.solver = solver;
    options.trained_share = share;
    options.send = [&](const std::string& request) {
      std::optional<Statistics> sum;
      for (Index k = 0; k < workers; ++k) {
        Worker worker(base);
        worker.handle(request);
        constexpr Index block_rows = 700;
        const Index last = count() * (k + 1) / workers;
        for (Index first = count() * k / workers; first < last; first += block_rows) {
          const DatasetView block = rows(first, std::min(block_rows, last - first));
          worker.add_rows(block, hash_rows(block));
        }
        if (sum)
          *sum += worker.response();
        else
          sum = worker.response();
      }
      return Statistics::from_bytes(sum->to_bytes());
    };
    return train_distributed(base, options);
  }

  [[nodiscard]] std::vector<double> predictions(const std::string& model) const {
    std::vector<double> values(targets_.size());
    (void)Predictor::from_bytes(model).predict(rows(0, count()), values);
    return values;
  }

  [[nodiscard]] double loss(const std::string& model) const {
    const std::vector<double> values = predictions(model);
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      sum += classes_ ? -std::log(targets_[i] > 0 ? values[i] : 1 - values[i]) : std::pow(values[i] - targets_[i], 2);
    return sum / static_cast<double>(values.size());
  }

  std::vector<double> targets_;

 private:
  Index dim_;
  bool classes_;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int32_t> columns_;
  std::vector<double> values_;
  std::vector<double> weights_;
};

double max_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) result = std::max(result, std::abs(a[i] - b[i]));
  return result;
}

TEST(DistributedTraining, GaussNewtonIsIndependentOfThePartitioning) {
  for (const bool classes : {false, true}) {
    const PartitionedRows data(3000, 40, 5, classes, 0.3);
    const std::vector<double> expected = data.predictions(data.train_on(1, Solver::newton).model);
    for (const Index workers : {2, 7})
      EXPECT_LT(max_difference(expected, data.predictions(data.train_on(workers, Solver::newton).model)), 1e-9)
          << workers << (classes ? " workers, classes" : " workers");
  }
}

TEST(DistributedTraining, OnePassLossDependsLittleOnThePartitioning) {
  for (const bool classes : {false, true}) {
    const PartitionedRows data(6000, 40, 5, classes, 0.3);
    const double whole = data.loss(data.train_on(1, Solver::kalman).model);
    for (const Index workers : {2, 5}) EXPECT_LT(data.loss(data.train_on(workers, Solver::kalman).model), 1.01 * whole);
  }
}

TEST(DistributedTraining, GaussNewtonDecreasesTheLossOfOnePass) {
  const PartitionedRows data(1500, 60, 5, false, 0.1);
  const double start_loss = data.loss(data.start_model(0.2));
  const double one_pass = data.loss(data.train_on(2, Solver::kalman).model);
  const DistributedSummary both = data.train_on(2, Solver::automatic);
  EXPECT_LT(one_pass, start_loss);
  EXPECT_LT(data.loss(both.model), 0.8 * one_pass);
  EXPECT_LT(both.multi_pass, both.one_pass);
  EXPECT_EQ(both.rows, data.count());
}

TEST(DistributedTraining, ErrorBarsEqualThoseOfOneProcess) {
  const PartitionedRows data(6000, 30, 5, false, 0.3);
  const auto mean_deviation = [&](const std::string& model) {
    std::vector<double> values(6000);
    std::vector<double> deviations(6000);
    (void)Predictor::from_bytes(model).predict(data.rows(0, 6000), values, deviations);
    return std::accumulate(deviations.begin(), deviations.end(), 0.0) / 6000;
  };
  const double whole = mean_deviation(data.start_model(1));
  EXPECT_NEAR(mean_deviation(data.train_on(3, Solver::kalman).model), whole, 0.08 * whole);
  EXPECT_NEAR(mean_deviation(data.train_on(3, Solver::automatic).model), 0.3, 0.02);
}

TEST(HashRows, DependsOnTheContentOnly) {
  const std::vector<double> dense{1.5, 0, 2, 0, 0, 3};
  const std::vector<std::int64_t> offsets{0, 2, 3};
  const std::vector<std::int32_t> columns{0, 2, 2};
  const std::vector<double> values{1.5, 2, 3};
  const std::vector<double> targets{1, 2};
  DatasetView matrix;
  matrix.count = 2;
  matrix.features = MatrixView{3, dense.data(), 3, 1};
  matrix.targets = targets;
  DatasetView sparse = matrix;
  sparse.features = SparseView{3, offsets.data(), columns.data(), values.data()};
  EXPECT_EQ(hash_rows(matrix), hash_rows(sparse));
  EXPECT_NE(hash_rows(matrix)[0], hash_rows(matrix)[1]);
  const std::vector<double> others{1, 3};
  sparse.targets = others;
  EXPECT_EQ(hash_rows(matrix)[0], hash_rows(sparse)[0]);
  EXPECT_NE(hash_rows(matrix)[1], hash_rows(sparse)[1]);
}

TEST(HashRows, IsUniform) {
  const PartitionedRows data(20'000, 40, 5, false, 0.3);
  const std::vector<std::uint64_t> hashes = hash_rows(data.rows(0, 20'000));
  const auto low =
      std::count_if(hashes.begin(), hashes.end(), [](auto hash) { return hash < (std::uint64_t{1} << 62); });
  const auto tenth = std::count_if(hashes.begin(), hashes.end(), [](auto hash) { return hash % 10 == 0; });
  EXPECT_NEAR(static_cast<double>(low), 5000, 300);
  EXPECT_NEAR(static_cast<double>(tenth), 2000, 200);
}

TEST(DistributedTraining, ModelOfAllRowsIsUnchanged) {
  const PartitionedRows data(500, 20, 4, false, 0.3);
  const DistributedSummary summary = data.train_on(2, Solver::kalman, 1);
  EXPECT_LT(max_difference(data.predictions(summary.model), data.predictions(data.start_model(1))), 1e-12);
}

TEST(DistributedTraining, UnsupportedModelsAndMessagesAreRejected) {
  const PartitionedRows data(500, 20, 4, false, 0.3);
  EXPECT_THROW((void)start_workers(data.start_model(0.5, Solver::moment)), std::invalid_argument);
  EXPECT_THROW((void)start_workers("no model"), DataError);
  const std::string base = start_workers(data.start_model(0.5));
  Worker worker(base);
  EXPECT_THROW(worker.handle("no request"), DataError);
  DistributedOptions options;
  options.send = [&](const std::string&) { return Statistics(); };
  EXPECT_THROW((void)train_distributed(base, options), std::invalid_argument);
  options.solver = Solver::variational;
  EXPECT_THROW((void)train_distributed(base, options), std::invalid_argument);
}

TEST(DistributedTraining, ResponsesToDifferentRequestsCannotBeAdded) {
  const PartitionedRows data(600, 20, 4, false, 0.3);
  const std::string base = start_workers(data.start_model(0.5));
  std::vector<Statistics> responses;
  DistributedOptions options;
  options.trained_share = 0.5;
  options.send = [&](const std::string& request) {
    Worker worker(base);
    worker.handle(request);
    const DatasetView all = data.rows(0, 600);
    worker.add_rows(all, hash_rows(all));
    responses.push_back(worker.response());
    return responses.back();
  };
  (void)train_distributed(base, options);
  ASSERT_GT(responses.size(), 2U);
  EXPECT_THROW(responses[0] += responses[1], std::invalid_argument);
}

}  // namespace
}  // namespace dyad
