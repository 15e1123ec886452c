#include "newton/jacobian.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_model;
using test::random_rows;

struct Case {
  Index left_dim;
  Diagonal diagonal;
  bool sparse;
};
constexpr Case cases[] = {{0, Diagonal::tied, false}, {0, Diagonal::tied, true}, {0, Diagonal::zero, false},
                          {0, Diagonal::free, false}, {0, Diagonal::free, true}, {3, Diagonal::tied, false},
                          {3, Diagonal::tied, true}};

SignedFactors<double> parameters_for(const Case& c) {
  Model<double> model = random_model<double>(7, 2, 1, c.left_dim);
  if (c.diagonal != Diagonal::tied) model.squares.assign(7, 0.2);
  return SignedFactors<double>::of(model, c.diagonal, 0);
}

Direction<double> random_direction(const SignedFactors<double>& parameters, std::uint64_t seed) {
  Random random(seed, 0);
  Direction<double> t;
  t.intercept = random.normal();
  t.features = random_normal<double>(random, parameters.dim(), parameters.rank() + 1);
  if (parameters.squares.size() > 0) t.squares = random_normal<double>(random, parameters.dim(), 1);
  return t;
}

SignedFactors<double> moved(SignedFactors<double> parameters, const Direction<double>& t, double step) {
  parameters.intercept += step * t.intercept;
  parameters.weights += step * t.features.col(0);
  parameters.A += step * t.features.rightCols(parameters.rank());
  if (parameters.squares.size() > 0) parameters.squares += step * t.squares;
  return parameters;
}

TEST(Jacobian, PredictsWhatTheModelPredicts) {
  Workers workers(2);
  const auto rows = random_rows<double>(40, 7, 2, 0.6);
  for (const Case& c : cases) {
    Jacobian<double> J(c.sparse ? rows.sparse() : rows.dense(), {}, workers);
    const auto parameters = parameters_for(c);
    EXPECT_LT((J.move_to(parameters) - test::brute_force_predictions(parameters.model(), rows.X)).norm(), 1e-10);
  }
}

TEST(Jacobian, IsTheDerivativeByFiniteDifferences) {
  Workers workers(2);
  const auto rows = random_rows<double>(40, 7, 2, 0.6);
  for (const Case& c : cases) {
    Jacobian<double> J(c.sparse ? rows.sparse() : rows.dense(), {}, workers);
    const auto parameters = parameters_for(c);
    const auto t = random_direction(parameters, 5);
    constexpr double step = 1e-5;
    const Vector<double> above = J.move_to(moved(parameters, t, step));
    const Vector<double> below = J.move_to(moved(parameters, t, -step));
    J.move_to(parameters);
    EXPECT_LT(((above - below) / (2 * step) - J.times(t)).norm(), 1e-6);
  }
}

TEST(Jacobian, TransposedIsTheTranspose) {
  const auto rows = random_rows<double>(3000, 30, 2, 0.6);  // enough work for several workers
  for (const int threads : {1, 2, 3})
    for (const Index left_dim : {0, 10})
      for (const Diagonal diagonal : {Diagonal::tied, Diagonal::free}) {
        if (left_dim > 0 && diagonal == Diagonal::free) continue;
        Workers workers(threads);
        const auto parameters = SignedFactors<double>::of(random_model<double>(30, 3, 1, left_dim), diagonal, 0);
        Jacobian<double> J(rows.dense(), {}, workers);
        J.move_to(parameters);
        const auto t = random_direction(parameters, 5);
        Random random(6, 0);
        const Vector<double> e = random_normal<double>(random, 3000, 1);
        EXPECT_NEAR(J.times(t).dot(e), J.transposed_times(e).dot(t), 1e-7);
      }
}

}  // namespace
}  // namespace dyad
