#include "solvers/gauss_newton/levenberg_marquardt.h"

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "support.h"

namespace dyad {
namespace {

/// Rows of correlated features with different scales and a non-zero mean.
test::OwnedRows<double> correlated_rows(Index count, Index dim, std::uint64_t seed, double mean = 0.5) {
  Random random(seed, 7);
  RowMajorMatrix<double> X = random_normal<double>(random, count, dim);
  const Vector<double> common = random_normal<double>(random, count, 1);
  for (Index j = 0; j < dim; ++j)
    X.col(j) = (0.3 + 0.2 * static_cast<double>(j)) * (X.col(j) + 2 * common).array() + mean;
  std::vector<double> y(static_cast<std::size_t>(count));
  const Vector<double> f = test::brute_force_predictions(test::random_model<double>(dim, 2, seed), X);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = f[static_cast<Index>(i)] + 0.3 * random.normal();
  return {std::move(X), std::move(y)};
}

/// Zero weights, small random factors and alternating signs.
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

TEST(LevenbergMarquardt, ObjectiveNeverIncreases) {
  ThreadPool pool(2);
  auto rows = correlated_rows(500, 6, 1);
  for (const Task task : {Task::regression, Task::classification}) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.likelihood = make_likelihood(task);
    options.shape.diagonal = Diagonal::free;
    options.ridge = {0.5, 0.5};
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(6, 2, Diagonal::free));
    double before = solver.objective();
    while (solver.step()) {
      EXPECT_LE(solver.objective(), before);
      before = solver.objective();
    }
    EXPECT_LT(solver.loss(), 0.5);
  }
}

/// J'r = ridge theta at the minimum, with either preconditioner.
TEST(LevenbergMarquardt, GradientOfLossAndRidgeVanishesAtTheEnd) {
  ThreadPool pool(2);
  const auto rows = correlated_rows(500, 6, 2);
  for (const bool has_moment_preconditioner : {true, false}) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::free;
    options.ridge = {5, 3};
    options.has_moment_preconditioner = has_moment_preconditioner;
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(6, 2, Diagonal::free));
    for (int restart = 0; restart < 5; ++restart) {
      solver.run();
      solver.start(solver.parameters());
    }
    const SignedFactors<double>& end = solver.parameters();
    Objective objective(rows.dense(), options, pool);
    objective.evaluate_at(small_start(6, 2, Diagonal::free));
    const double initial_norm = objective.negative_gradient().features.norm();
    objective.evaluate_at(end);
    EXPECT_LT((objective.negative_gradient().features.col(0) - 5 * end.weights).norm(), 1e-3 * initial_norm);
    EXPECT_LT((objective.negative_gradient().features.rightCols(2) - 3 * end.A).norm(), 1e-3 * initial_norm);
    EXPECT_LT((objective.negative_gradient().squares - 5 * end.squares).norm(), 1e-3 * initial_norm);
  }
}

TEST(LevenbergMarquardt, TreatsTargetsAtTheEndOfTheRangeAsCensored) {
  ThreadPool pool(1);
  auto rows = correlated_rows(2000, 5, 3);
  const auto uncensored = rows;
  double max_target = 0;
  for (const double y : rows.targets) max_target = std::max(max_target, y);
  const double high = 0.1 * max_target;
  for (double& y : rows.targets) y = std::min(y, high);
  const auto error = [&](double support_high) {
    NewtonOptions options;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::free;
    options.likelihood = make_likelihood(Task::regression, {.high = support_high});
    options.ridge = {1e-3, 1e-3};
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(5, 2, Diagonal::free));
    solver.run();
    std::vector<double> f(2000);
    solver.parameters().predict(rows.dense(), f);
    double squares = 0;
    for (std::size_t i = 0; i < f.size(); ++i) squares += std::pow(f[i] - uncensored.targets[i], 2) / 2000;
    return std::sqrt(squares);
  };
  EXPECT_LT(error(high), 0.5);  // the noise is 0.3
  EXPECT_GT(error(std::numeric_limits<double>::infinity()), 5 * error(high));
}

TEST(LevenbergMarquardt, EstimatesLogOddsOfClasses) {
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
  LevenbergMarquardt solver(rows.dense(), options, pool);
  solver.start(small_start(4, 2, Diagonal::tied));
  solver.run();
  const Model<double> model = solver.parameters().model();
  EXPECT_LT((as_vector(model.weights) - as_vector(truth.weights)).norm(), 0.15);
  EXPECT_LT((test::dense_interactions(model) - test::dense_interactions(truth)).norm(), 0.15);
}

TEST(LevenbergMarquardt, MomentPreconditionerReducesPasses) {
  ThreadPool pool(1);
  const auto rows = correlated_rows(3000, 12, 5, 0);
  const auto passes_with = [&](bool has_moment_preconditioner) {
    NewtonOptions options;
    options.shape.rank = 4;
    options.ridge = {1, 1};
    options.has_moment_preconditioner = has_moment_preconditioner;
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(12, 4, Diagonal::tied));
    solver.run();
    return solver.passes();
  };
  EXPECT_LT(passes_with(true), passes_with(false));
}

/// With 20 rows, the dual needs a fixed number of passes per step. The cost of a pass is linear in the number of
/// features.
TEST(LevenbergMarquardt, PassesPerStepDoNotDependOnTheNumberOfFeatures) {
  ThreadPool pool(1);
  for (const Index dim : {100, 400, 1600}) {
    const auto rows = test::random_rows<double>(20, dim, 6);
    NewtonOptions options;
    options.shape.rank = 4;
    options.shape.diagonal = Diagonal::free;
    options.ridge = {1e-3, 1e-3};
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(dim, 4, Diagonal::free));
    solver.run();
    EXPECT_LT(solver.loss(), 1e-3 * solver.constant_loss());
    EXPECT_LE(solver.passes(), 4 * solver.steps() + 1) << dim;
  }
}

TEST(LevenbergMarquardt, InterruptedStepDoesNotChangeTheParameters) {
  ThreadPool pool(2);
  constexpr Index dim = 1600;
  const auto rows = test::random_rows<double>(20, dim, 7);
  for (int after = 0; after < 12; ++after) {
    NewtonOptions options;
    options.shape.rank = 4;
    options.ridge = {1e-3, 1e-3};
    int call_count = 0;
    options.interrupted = [&] { return call_count++ >= after; };
    LevenbergMarquardt solver(rows.dense(), options, pool);
    solver.start(small_start(dim, 4, Diagonal::tied));
    const double objective = solver.objective();
    EXPECT_FALSE(solver.step()) << after;
    EXPECT_EQ(call_count, after + 2);  // calls by worker 0 per block until it returns true, and one call by step()
    EXPECT_EQ(solver.objective(), objective);
    EXPECT_EQ(solver.parameters().A, small_start(dim, 4, Diagonal::tied).A);
  }
}

}  // namespace
}  // namespace dyad
