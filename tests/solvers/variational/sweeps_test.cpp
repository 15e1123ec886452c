#include "solvers/variational/sweeps.h"

#include <cmath>

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "support.h"

namespace dyad {
namespace {

/// Rows of a random model with factors, and a random start.
struct PlantedFactors {
  test::OwnedRows<double> rows;
  Posterior<double> start;
};

/// Rows with one non-zero entry in each of `entries` groups of dim / entries features. Its value is 1 (`ones`) or
/// normal. The noise has a standard deviation of 0.5.
PlantedFactors plant_factors(Index count, Index dim, Index entries, Diagonal diagonal, bool ones, std::uint64_t seed,
                             Index rank = 3) {
  Random random(seed, 0);
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(count, dim);
  const Index levels = dim / entries;
  for (Index i = 0; i < count; ++i)
    for (Index e = 0; e < entries; ++e) {
      const auto j = e * levels + static_cast<Index>(random.uniform() * static_cast<double>(levels));
      X(i, j) = ones ? 1 : random.normal();
    }
  Model<double> truth = test::random_model<double>(dim, 2, seed);
  truth.squares.assign(static_cast<std::size_t>(dim), 0);
  const Matrix<double> M = test::dense_interactions(truth);
  for (Index j = 0; j < dim; ++j)
    truth.squares[static_cast<std::size_t>(j)] = (diagonal == Diagonal::free ? 0.3 : 0) - M(j, j);
  const Vector<double> f = 3 * test::brute_force_predictions(truth, X);
  std::vector<double> y(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = f[static_cast<Index>(i)] + 0.5 * random.normal();
  Posterior<double> start;
  SignedFactors<double>& means = start.means;
  means.diagonal = diagonal;
  means.weights = 0.1 * random_normal<double>(random, dim, 1);
  means.A = 0.3 * random_normal<double>(random, dim, rank);
  means.signs = alternating_signs<double>(rank);
  if (diagonal == Diagonal::free) means.squares = Vector<double>::Zero(dim);
  start.variances = means;
  start.variances.intercept = 1;
  start.variances.weights.setConstant(0.5);
  start.variances.A.setConstant(0.1);
  if (diagonal == Diagonal::free) start.variances.squares.setConstant(0.5);
  return {{std::move(X), std::move(y)}, std::move(start)};
}

LikelihoodPointer likelihood_for(Task task, double high = std::numeric_limits<double>::infinity()) {
  return make_likelihood(task, {.high = high});
}

class VariationalUpdates : public testing::TestWithParam<std::tuple<Index, Diagonal, Task, bool>> {};

TEST_P(VariationalUpdates, NeverDecreaseTheBound) {
  const auto [entries, diagonal, task, ones] = GetParam();
  ThreadPool pool(2);
  const PlantedFactors data = plant_factors(400, entries * 6, entries, diagonal, ones, 1);
  for (const double high : {1.0, std::numeric_limits<double>::infinity()}) {
    auto rows = data.rows;
    for (double& y : rows.targets) y = std::min(y, high);
    VariationalSweeps<double> sweeps(rows.sparse(), likelihood_for(task, high), data.start, pool);
    sweeps.update_residuals();
    double before = sweeps.bound();
    const auto expect_no_decrease = [&](const char* update) {
      const double now = sweeps.bound();
      EXPECT_GE(now, before - 1e-9 * std::abs(before)) << update;
      before = now;
    };
    const double first = before;
    for (int sweep = 0; sweep < 5; ++sweep) {
      sweeps.update_residuals();
      expect_no_decrease("residuals");
      sweeps.update_intercept();
      expect_no_decrease("intercept");
      for (std::size_t c = 0; c < sweeps.color_class_count(); ++c) {
        sweeps.update_features(c);
        expect_no_decrease("features");
      }
      sweeps.update_priors();
      expect_no_decrease("priors");
    }
    EXPECT_GT(before, first + 10);
  }
}

INSTANTIATE_TEST_SUITE_P(All, VariationalUpdates,
                         testing::Combine(testing::Values(2, 14), testing::Values(Diagonal::zero, Diagonal::free),
                                          testing::Values(Task::regression, Task::classification), testing::Bool()));

/// Monte Carlo estimate of E[log p(y | theta)] - KL(posterior, prior) with the estimated noise.
TEST(VariationalSweeps, BoundEqualsMonteCarloEstimate) {
  ThreadPool pool(1);
  const PlantedFactors data = plant_factors(30, 12, 4, Diagonal::free, false, 2, 2);
  VariationalSweeps<double> sweeps(data.rows.sparse(), likelihood_for(Task::regression), data.start, pool);
  sweeps.sweep();
  sweeps.sweep();
  const Posterior<double> posterior = sweeps.posterior();
  const double noise = sweeps.noise_variance();
  Random random(4, 0);
  constexpr int draws = 20000;
  double sum = 0;
  double squares = 0;
  std::vector<double> f(30);
  for (int draw = 0; draw < draws; ++draw) {
    SignedFactors<double> theta = posterior.means;
    const auto add_noise = [&](double& mean, double variance) { mean += std::sqrt(variance) * random.normal(); };
    add_noise(theta.intercept, posterior.variances.intercept);
    for (Index j = 0; j < 12; ++j) {
      add_noise(theta.weights[j], posterior.variances.weights[j]);
      add_noise(theta.squares[j], posterior.variances.squares[j]);
      for (Index c = 0; c < 2; ++c) add_noise(theta.A(j, c), posterior.variances.A(j, c));
    }
    theta.predict(data.rows.dense(), f);
    double log_likelihood = 0;
    for (std::size_t i = 0; i < f.size(); ++i)
      log_likelihood -= std::pow(data.rows.targets[i] - f[i], 2) / (2 * noise) + std::log(2 * M_PI * noise) / 2;
    sum += log_likelihood / draws;
    squares += log_likelihood * log_likelihood / draws;
  }
  double divergence = 0;
  const std::vector<double> precisions = sweeps.prior_precisions();
  const auto add = [&](double precision, double mean, double variance) {
    divergence += (precision * (mean * mean + variance) - 1 - std::log(precision * variance)) / 2;
  };
  constexpr double intercept_precision = 1e-12 * 30;  // prior precision, proportional to the number of rows
  add(intercept_precision, posterior.means.intercept, posterior.variances.intercept);
  for (Index j = 0; j < 12; ++j) {
    if (data.rows.X.col(j).squaredNorm() == 0) continue;
    for (Index c = 0; c < 2; ++c)
      add(precisions[static_cast<std::size_t>(c)], posterior.means.A(j, c), posterior.variances.A(j, c));
    add(precisions[2], posterior.means.weights[j], posterior.variances.weights[j]);
    add(precisions[3], posterior.means.squares[j], posterior.variances.squares[j]);
  }
  const double error = std::sqrt((squares - sum * sum) / draws);
  EXPECT_NEAR(sweeps.bound(), sum - divergence, 5 * error);
}

TEST(VariationalSweeps, ResultsDoNotDependOnTheNumberOfThreads) {
  const PlantedFactors data = plant_factors(3000, 600, 2, Diagonal::zero, true, 3);
  std::vector<Posterior<double>> results;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    VariationalSweeps<double> sweeps(data.rows.sparse(), likelihood_for(Task::regression), data.start, pool);
    EXPECT_EQ(sweeps.color_class_count(), 2);  // the levels of each column
    for (int sweep = 0; sweep < 3; ++sweep) sweeps.sweep();
    results.push_back(sweeps.posterior());
  }
  for (const Posterior<double>& other : results) {
    EXPECT_EQ(other.means.A, results[0].means.A);
    EXPECT_EQ(other.means.weights, results[0].means.weights);
    EXPECT_EQ(other.variances.A, results[0].variances.A);
  }
}

TEST(VariationalSweeps, WeightsEqualRepeatedRows) {
  ThreadPool pool(1);
  const PlantedFactors data = plant_factors(200, 12, 3, Diagonal::zero, false, 4);
  const std::vector<double> weights(200, 2);
  RowMajorMatrix<double> twice(400, 12);
  twice << data.rows.X, data.rows.X;
  std::vector<double> targets = data.rows.targets;
  targets.insert(targets.end(), data.rows.targets.begin(), data.rows.targets.end());
  const test::OwnedRows<double> repeated(twice, targets);
  for (const Task task : {Task::regression, Task::classification}) {
    VariationalSweeps<double> by_weight(data.rows.sparse().weighted(weights), likelihood_for(task), data.start, pool);
    VariationalSweeps<double> by_rows(repeated.sparse(), likelihood_for(task), data.start, pool);
    for (int sweep = 0; sweep < 3; ++sweep) {
      by_weight.sweep();
      by_rows.sweep();
    }
    EXPECT_NEAR(by_weight.bound(), by_rows.bound(), 1e-8 * std::abs(by_rows.bound()));
    EXPECT_LT((by_weight.posterior().means.A - by_rows.posterior().means.A).norm(), 1e-8);
  }
}

TEST(VariationalSweeps, AcceptsRowsWithOneOrNoEntry) {
  ThreadPool pool(1);
  PlantedFactors data = plant_factors(300, 20, 2, Diagonal::zero, true, 5);
  data.rows.X.topRows(50).setZero();
  for (Index i = 50; i < 100; ++i) data.rows.X.row(i).head(10).setZero();
  const test::OwnedRows<double> rows(data.rows.X, data.rows.targets);
  VariationalSweeps<double> sweeps(rows.sparse(), likelihood_for(Task::regression), data.start, pool);
  sweeps.update_residuals();
  double before = sweeps.bound();
  for (int sweep = 0; sweep < 5; ++sweep) {
    sweeps.sweep();
    EXPECT_GT(sweeps.bound(), before);
    before = sweeps.bound();
  }
}

TEST(VariationalSweeps, UnusedFactorsShrinkToZero) {
  ThreadPool pool(2);
  const PlantedFactors data = plant_factors(20000, 60, 2, Diagonal::zero, true, 6, 8);  // the planted rank is 2
  VariationalSweeps<double> sweeps(data.rows.sparse(), likelihood_for(Task::regression), data.start, pool);
  for (int sweep = 0; sweep < 60; ++sweep) sweeps.sweep();
  EXPECT_NEAR(sweeps.noise_variance(), 0.25, 0.01);
  const Model<double> model = sweeps.posterior().means.model();
  EXPECT_GT(std::abs(model.spectrum[1]), 0.3);
  EXPECT_LT(std::abs(model.spectrum[3]), 0.1 * std::abs(model.spectrum[0]));
}

TEST(VariationalSweeps, EstimatesLogOddsOfClasses) {
  ThreadPool pool(2);
  PlantedFactors data = plant_factors(30000, 20, 2, Diagonal::zero, true, 7, 2);
  Random random(3, 0);
  std::vector<double> log_odds(data.rows.targets.size());
  for (std::size_t i = 0; i < log_odds.size(); ++i) {
    log_odds[i] = data.rows.X.row(static_cast<Index>(i)).head(10).sum() > 0
                      ? data.rows.X(static_cast<Index>(i), 0) * 2 + data.rows.X(static_cast<Index>(i), 12) - 0.5
                      : 0;
    data.rows.targets[i] = random.uniform() < logistic(log_odds[i]) ? 1 : -1;
  }
  VariationalSweeps<double> sweeps(data.rows.sparse(), likelihood_for(Task::classification), data.start, pool);
  for (int sweep = 0; sweep < 20; ++sweep) sweeps.sweep();
  std::vector<double> estimates(log_odds.size());
  sweeps.posterior().means.predict(data.rows.dense(), estimates);
  double squares = 0;
  for (std::size_t i = 0; i < estimates.size(); ++i) squares += std::pow(estimates[i] - log_odds[i], 2) / 30000;
  EXPECT_LT(std::sqrt(squares), 0.12);
}

}  // namespace
}  // namespace dyad
