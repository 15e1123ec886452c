#include "recovery/theory.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

/// Spectral norm of a symmetric matrix.
double spectral_norm(const Eigen::MatrixXd& A) {
  return A.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs().maxCoeff();
}

/// Compares both constants with a computation that forms all d x d matrices.
class Theory : public testing::TestWithParam<double> {};

TEST_P(Theory, ConstantsEqualDenseComputation) {
  constexpr Index dim = 12;
  constexpr Index n = 900;
  auto truth = test::random_model<double>(dim, 2, 1);
  auto model = test::random_model<double>(dim, 2, 2);
  truth.intercept = model.intercept = 0;
  // The parameter is the relative distance of M from M*. It determines which constant is the largest.
  as_vector(model.spectrum) = (1 - GetParam()) * as_vector(truth.spectrum);
  model.factors = truth.factors;
  auto rows = test::random_rows<double>(n, dim, 3);
  as_vector(rows.targets) = test::brute_force_predictions(truth, rows.X);
  RecoveryPoint before;
  const Eigen::MatrixXd D = test::dense_interactions(truth) - test::dense_interactions(model);
  before.error_M = spectral_norm(D);
  before.error_w = (as_vector(truth.weights) - as_vector(model.weights)).norm();
  before.tan_theta = 1;
  ThreadPool pool(2);
  const Batch<double> batch = [&](const std::function<void(const Rows<double>&)>& visit) { visit(rows.dense()); };
  const TheoryPoint theory = measure_theory(model, truth, before, batch, pool);

  const Eigen::MatrixXd I = Eigen::MatrixXd::Identity(dim, dim);
  const Eigen::VectorXd quadratic = (rows.X * D).cwiseProduct(rows.X).rowwise().sum();
  const Eigen::MatrixXd rip = rows.X.transpose() * quadratic.asDiagonal() * rows.X / (2.0 * n) - D.trace() / 2 * I - D;
  EXPECT_NEAR(theory.ci_rip, spectral_norm(rip) / spectral_norm(D), 0.01 * theory.ci_rip);

  const Eigen::VectorXd r = as_vector(rows.targets) - test::brute_force_predictions(model, rows.X);
  const Eigen::MatrixXd E = rows.X.transpose() * r.asDiagonal() * rows.X / (2.0 * n) - r.mean() / 2 * I - D;
  const double error_w = (rows.X.transpose() * r / n - (as_vector(truth.weights) - as_vector(model.weights))).norm();
  const double expected =
      std::max(std::max(spectral_norm(E), error_w) / before.error(), spectral_norm(rip) / spectral_norm(D));
  EXPECT_NEAR(theory.delta, expected, 0.01 * expected);
}

INSTANTIATE_TEST_SUITE_P(Distances, Theory, testing::Values(1.0, 0.1, 0.001));

}  // namespace
}  // namespace dyad
