#include "solvers/gauss_newton/levenberg_marquardt.h"

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "support.h"

namespace dyad {
namespace {

/// Features that go together, far from standardised.
test::OwnedRows<double> correlated_rows(Index count, Index dim, std::uint64_t seed, double mean = 0.5) {
  Random random(seed, 7);
  Tall<double> X = random_normal<double>(random, count, dim);
  const Vector<double> common = random_normal<double>(random, count, 1);
  for (Index j = 0; j < dim; ++j)
    X.col(j) = (0.3 + 0.2 * static_cast<double>(j)) * (X.col(j) + 2 * common).array() + mean;
  std::vector<double> y(static_cast<std::size_t>(count));
  const Vector<double> f = test::brute_force_predictions(test::random_model<double>(dim, 2, seed), X);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = f[static_cast<Index>(i)] + 0.3 * random.normal();
  return {std::move(X), std::move(y)};
}

SignedFactors<double> small_start(Index dim, Index rank, Diagonal diagonal) {
  Random random(3, 0);
  SignedFactors<double> start;
  start.diagonal = diagonal;
  start.weights = Vector<double>::Zero(dim);
  if (diagonal == Diagonal::free) start.squares = Vector<double>::Zero(dim);
  start.A = 0.1 * random_normal<double>(random, dim, rank);
  start.signs = alternating_signs<double>(rank);
  return start;
}

TEST(LevenbergMarquardt, NeverGoesUp) {
  ThreadPool pool(2);
  auto rows = correlated_rows(500, 6, 1);
  for (const Task task : {Task::regression, Task::classification}) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.likelihood = make_likelihood(task);
    options.shape.diagonal = Diagonal::free;
    options.ridge = {0.5, 0.5};
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(6, 2, Diagonal::free));
    double before = descent.objective();
    while (descent.step()) {
      EXPECT_LE(descent.objective(), before);
      before = descent.objective();
    }
    EXPECT_LT(descent.loss(), 0.5);
  }
}

/// At the end the slope of loss and ridge is 0, whichever way the steps were solved.
TEST(LevenbergMarquardt, EndsWhereRidgeAndLossBalance) {
  ThreadPool pool(2);
  const auto rows = correlated_rows(500, 6, 2);
  for (const bool preconditioned : {true, false}) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::free;
    options.ridge = {5, 3};
    options.preconditioned = preconditioned;
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(6, 2, Diagonal::free));
    for (int again = 0; again < 5; ++again) {
      descent.run();
      descent.start(descent.parameters());
    }
    const SignedFactors<double>& end = descent.parameters();
    Objective objective(rows.dense(), options, pool);
    objective.move_to(small_start(6, 2, Diagonal::free));
    const double first = objective.negative_gradient().features.norm();
    objective.move_to(end);
    EXPECT_LT((objective.negative_gradient().features.col(0) - 5 * end.weights).norm(), 1e-3 * first);
    EXPECT_LT((objective.negative_gradient().features.rightCols(2) - 3 * end.A).norm(), 1e-3 * first);
    EXPECT_LT((objective.negative_gradient().squares - 5 * end.squares).norm(), 1e-3 * first);
  }
}

TEST(LevenbergMarquardt, KnowsThatEndsOfTheRangeStandForMore) {
  ThreadPool pool(1);
  auto rows = correlated_rows(2000, 5, 3);
  const auto cut = rows;
  double most = 0;
  for (const double y : rows.targets) most = std::max(most, y);
  const double high = 0.1 * most;
  for (double& y : rows.targets) y = std::min(y, high);
  const auto error = [&](double known_high) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::free;
    options.likelihood = make_likelihood(Task::regression, {.high = known_high});
    options.ridge = {1e-3, 1e-3};
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(5, 2, Diagonal::free));
    descent.run();
    std::vector<double> f(2000);
    descent.parameters().predict(rows.dense(), f);
    double squares = 0;
    for (std::size_t i = 0; i < f.size(); ++i) squares += std::pow(f[i] - cut.targets[i], 2) / 2000;
    return std::sqrt(squares);
  };
  EXPECT_LT(error(high), 0.5);  // the noise is 0.3
  EXPECT_GT(error(std::numeric_limits<double>::infinity()), 5 * error(high));
}

TEST(LevenbergMarquardt, FindsTheLogOddsOfClasses) {
  ThreadPool pool(2);
  auto rows = test::random_rows<double>(20000, 4, 4);
  const Model<double> truth = test::random_model<double>(4, 1, 4);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  Random random(9, 0);
  for (std::size_t i = 0; i < rows.targets.size(); ++i)
    rows.targets[i] = random.uniform() < logistic(f[static_cast<Index>(i)]) ? 1 : -1;
  NewtonOptions options;
  options.shape.rank = 2;
  options.likelihood = make_likelihood(Task::classification);
  LevenbergMarquardt descent(rows.dense(), options, pool);
  descent.start(small_start(4, 2, Diagonal::tied));
  descent.run();
  const Model<double> model = descent.parameters().model();
  EXPECT_LT((as_vector(model.weights) - as_vector(truth.weights)).norm(), 0.15);
  EXPECT_LT((test::dense_interactions(model) - test::dense_interactions(truth)).norm(), 0.15);
}

TEST(LevenbergMarquardt, TheMomentsSaveProducts) {
  ThreadPool pool(1);
  const auto rows = correlated_rows(3000, 12, 5, 0);
  const auto products = [&](bool preconditioned) {
    NewtonOptions options;
    options.shape.rank = 4;
    options.ridge = {1, 1};
    options.preconditioned = preconditioned;
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(12, 4, Diagonal::tied));
    descent.run();
    return descent.products();
  };
  EXPECT_LT(products(true), products(false));
}

/// 20 rows of more and more features. A step reads the rows a fixed number of times, and what it computes per reading
/// is linear in the number of features.
TEST(LevenbergMarquardt, RowReadsPerStepDoNotGrowWithTheFeatures) {
  ThreadPool pool(1);
  for (const Index dim : {100, 400, 1600}) {
    const auto rows = test::random_rows<double>(20, dim, 6);
    NewtonOptions options;
    options.shape.rank = 4;
    options.shape.diagonal = Diagonal::free;
    options.ridge = {1e-3, 1e-3};
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(dim, 4, Diagonal::free));
    descent.run();
    EXPECT_LT(descent.loss(), 1e-3 * descent.constant_loss());
    EXPECT_LE(descent.products(), 4 * descent.steps() + 1) << dim;
  }
}

TEST(LevenbergMarquardt, AnInterruptedStepChangesNothing) {
  ThreadPool pool(2);
  constexpr Index dim = 1600;
  const auto rows = test::random_rows<double>(20, dim, 7);
  for (int after = 0; after < 12; ++after) {
    NewtonOptions options;
    options.shape.rank = 4;
    options.ridge = {1e-3, 1e-3};
    int asked = 0;
    options.interrupted = [&] { return asked++ >= after; };
    LevenbergMarquardt descent(rows.dense(), options, pool);
    descent.start(small_start(dim, 4, Diagonal::tied));
    const double objective = descent.objective();
    EXPECT_FALSE(descent.step()) << after;
    EXPECT_EQ(asked, after + 2);  // once per block of the first worker until it is true, and once by the step
    EXPECT_EQ(descent.objective(), objective);
    EXPECT_EQ(descent.parameters().A, small_start(dim, 4, Diagonal::tied).A);
  }
}

}  // namespace
}  // namespace dyad
