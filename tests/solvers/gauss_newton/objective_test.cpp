#include "solvers/gauss_newton/objective.h"

#include <cmath>

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "support.h"

namespace dyad {
namespace {

using test::random_model;
using test::random_rows;

/// A shape of the model and a layout of the rows.
struct Case {
  Index left_dim;
  Diagonal diagonal;
  bool sparse;
};
constexpr Case cases[] = {{0, Diagonal::tied, false}, {0, Diagonal::tied, true}, {0, Diagonal::zero, false},
                          {0, Diagonal::free, false}, {0, Diagonal::free, true}, {3, Diagonal::tied, false},
                          {3, Diagonal::tied, true}};

NewtonOptions objective_options(const Case& c) {
  NewtonOptions options;
  options.shape.rank = 2;
  options.shape.left_dim = c.left_dim;
  options.shape.diagonal = c.diagonal;
  return options;
}

SignedFactors<double> parameters_for(const Case& c, Index dim = 7) {
  Model<double> model = random_model<double>(dim, 2, 1, c.left_dim);
  if (c.diagonal != Diagonal::tied) model.squares.assign(static_cast<std::size_t>(dim), 0.2);
  return SignedFactors<double>::of(model, c.diagonal, 0);
}

ParameterVector random_direction(const SignedFactors<double>& parameters, std::uint64_t seed) {
  Random random(seed, 0);
  ParameterVector t;
  t.intercept = random.normal();
  t.features = random_normal<double>(random, parameters.dim(), parameters.rank() + 1);
  if (parameters.squares.size() > 0) t.squares = random_normal<double>(random, parameters.dim(), 1);
  return t;
}

ParameterVector scaled(ParameterVector t, double scale) {
  t.intercept *= scale;
  t.features *= scale;
  t.squares *= scale;
  return t;
}

/// Targets near the predictions, clipped to [-1.5, 1.5].
template <typename Rows>
void set_targets_near_predictions(Rows& rows, const SignedFactors<double>& parameters) {
  const Vector<double> f = test::brute_force_predictions(parameters.model(), rows.X);
  for (std::size_t i = 0; i < rows.targets.size(); ++i)
    rows.targets[i] = std::clamp(f[static_cast<Index>(i)] + rows.targets[i], -1.5, 1.5);
}

TEST(Objective, EqualsMeanLossByDefinition) {
  ThreadPool pool(2);
  for (const Case& c : cases) {
    auto rows = random_rows<double>(40, 7, 2, 0.6);
    const auto parameters = parameters_for(c);
    set_targets_near_predictions(rows, parameters);
    const Vector<double> f = test::brute_force_predictions(parameters.model(), rows.X);
    for (const bool classes : {false, true}) {
      NewtonOptions options = objective_options(c);
      options.likelihood = make_likelihood(classes ? Task::classification : Task::regression, {-1.5, 1.5});
      double expected = 0;
      for (Index i = 0; i < 40; ++i) {
        const double y = rows.targets[static_cast<std::size_t>(i)];
        const bool is_censored = (y == 1.5 && f[i] >= y) || (y == -1.5 && f[i] <= y);
        if (classes)
          expected -= std::log(logistic(y > 0 ? f[i] : -f[i])) / 40;
        else if (!is_censored)
          expected += (y - f[i]) * (y - f[i]) / 80;
      }
      Objective objective(c.sparse ? rows.sparse() : rows.dense(), options, pool);
      EXPECT_NEAR(objective.evaluate_at(parameters), expected, 1e-10);
    }
  }
}

TEST(Objective, NegativeGradientEqualsFiniteDifferences) {
  ThreadPool pool(2);
  for (const Case& c : cases)
    for (const bool classes : {false, true}) {
      auto rows = random_rows<double>(40, 7, 2, 0.6);
      const auto parameters = parameters_for(c);
      set_targets_near_predictions(rows, parameters);
      NewtonOptions options = objective_options(c);
      options.likelihood = make_likelihood(classes ? Task::classification : Task::regression, {.high = 1.5});
      Objective objective(c.sparse ? rows.sparse() : rows.dense(), options, pool);
      const auto t = random_direction(parameters, 5);
      constexpr double step = 1e-6;
      const double above = objective.evaluate_at(apply_step(parameters, scaled(t, step)));
      const double below = objective.evaluate_at(apply_step(parameters, scaled(t, -step)));
      objective.evaluate_at(parameters);
      EXPECT_NEAR(-40 * (above - below) / (2 * step), objective.negative_gradient().dot(t), 1e-4);
    }
}

/// For least squares the Gauss-Newton matrix equals the Hessian at zero residuals.
TEST(Objective, CurvatureEqualsSecondDerivativeAtZeroResiduals) {
  ThreadPool pool(2);
  for (const Case& c : cases) {
    auto rows = random_rows<double>(40, 7, 2, 0.6);
    const auto parameters = parameters_for(c);
    const Vector<double> f = test::brute_force_predictions(parameters.model(), rows.X);
    std::copy(f.begin(), f.end(), rows.targets.begin());
    Objective objective(c.sparse ? rows.sparse() : rows.dense(), objective_options(c), pool);
    const auto t = random_direction(parameters, 5);
    constexpr double step = 1e-4;
    const double moved_loss = objective.evaluate_at(apply_step(parameters, scaled(t, step)));
    objective.evaluate_at(parameters);
    const double expected = 2 * 40 * moved_loss / step / step;
    EXPECT_NEAR(objective.curvature_product(t).dot(t) / expected, 1, 1e-2);
  }
}

TEST(Objective, CurvatureIsSymmetricForAnyNumberOfThreads) {
  const auto rows = random_rows<double>(3000, 30, 2, 0.6);  // sufficient work for several threads
  for (const int threads : {1, 2, 3})
    for (const Case& c : cases) {
      ThreadPool pool(threads);
      NewtonOptions options = objective_options(c);
      options.likelihood = make_likelihood(Task::classification);
      const auto parameters = parameters_for(c, 30);
      Objective objective(c.sparse ? rows.sparse() : rows.dense(), options, pool);
      objective.evaluate_at(parameters);
      const auto s = random_direction(parameters, 5);
      const auto t = random_direction(parameters, 6);
      EXPECT_NEAR(objective.curvature_product(t).dot(s), objective.curvature_product(s).dot(t), 1e-7);
    }
}

TEST(Objective, IgnoresRowsOfWeightZero) {
  ThreadPool pool(1);
  const Case c{0, Diagonal::free, false};
  const auto rows = random_rows<double>(60, 7, 2);
  std::vector<double> weights(60, 1);
  std::fill(weights.begin() + 40, weights.end(), 0);
  const NewtonOptions options = objective_options(c);
  Objective weighted(rows.dense().weighted(weights), options, pool);
  Objective subset(rows.dense().slice(0, 40), options, pool);
  const auto parameters = parameters_for(c);
  EXPECT_NEAR(weighted.evaluate_at(parameters), subset.evaluate_at(parameters), 1e-12);
  const auto t = random_direction(parameters, 5);
  EXPECT_NEAR(weighted.negative_gradient().dot(t), subset.negative_gradient().dot(t), 1e-9);
  EXPECT_NEAR(weighted.curvature_product(t).dot(t), subset.curvature_product(t).dot(t), 1e-9);
}

/// (J'HJ + D) t = J'r - offset, with rows of weight 0 and censored rows.
TEST(Objective, DualSolvesTheDampedEquations) {
  constexpr Index count = 15;
  constexpr Index dim = 70;  // more than one block of features
  for (const int threads : {1, 2})
    for (const Case& c : cases)
      for (const Task task : {Task::regression, Task::classification}) {
        if (c.sparse) continue;
        ThreadPool pool(threads);
        auto rows = random_rows<double>(count, dim, 11);
        const SignedFactors<double> at = parameters_for(c, dim);
        set_targets_near_predictions(rows, at);
        std::vector<double> weights(count, 1.0);
        weights[3] = 0;
        weights[5] = 2.5;
        NewtonOptions options = objective_options(c);
        options.likelihood = make_likelihood(task, {.high = 1.5});
        Objective objective(rows.dense().weighted(weights), options, pool);
        objective.evaluate_at(at);
        ASSERT_TRUE(objective.prefers_dual());
        ParameterVector D = random_direction(at, 12);
        D.intercept = 0.3;
        D.features = D.features.cwiseAbs().array() + 0.1;
        D.squares = D.squares.cwiseAbs().array() + 0.1;
        ParameterVector offset = random_direction(at, 13);
        offset.intercept = 0;
        const ParameterVector t = objective.solve_dual(D, offset);
        ParameterVector left = objective.curvature_product(t);
        left.intercept += D.intercept * t.intercept;
        left.features += D.features.cwiseProduct(t.features);
        left.squares += D.squares.cwiseProduct(t.squares);
        ParameterVector right = objective.negative_gradient();
        const double norm = std::sqrt(right.dot(right));
        right.add(-1, offset);
        left.add(-1, right);
        EXPECT_LT(std::sqrt(left.dot(left)), 1e-10 * norm);
      }
}

TEST(Objective, PrefersDualForFewerDenseRowsThanUnknowns) {
  ThreadPool pool(1);
  const auto prefers_dual = [&](Index count, Index dim, bool sparse) {
    const auto rows = random_rows<double>(count, dim, 14);
    const Objective objective(sparse ? rows.sparse() : rows.dense(), objective_options(cases[0]), pool);
    return objective.prefers_dual();
  };
  EXPECT_TRUE(prefers_dual(20, 7, false));
  EXPECT_FALSE(prefers_dual(21, 7, false));  // 7 weights and 14 factors
  EXPECT_FALSE(prefers_dual(20, 7, true));
  EXPECT_FALSE(prefers_dual(2000, 1000, false));
}

}  // namespace
}  // namespace dyad
