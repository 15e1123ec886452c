#include "solvers/anova/variance_components.h"

#include <numbers>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "linalg/multiply.h"

namespace dyad {
namespace {

/// y = Z gamma + noise with two blocks of coefficients, the first with two components.
struct DenseProblem {
  explicit DenseProblem(std::uint64_t seed, Index count = 60) {
    Random random(seed, 0);
    Z = random_normal<double>(random, count, 9);
    Z.rowwise() -= Z.colwise().mean().eval();
    for (const Index rank : {2, 5}) factors.push_back(random_normal<double>(random, 5, rank));
    factors.push_back(random_normal<double>(random, 4, 4));
    for (const auto& U : factors) covariances.push_back(outer_gram(U));
    const Vector<double> gamma = random_normal<double>(random, 9, 1);
    y = Z * gamma + 2 * random_normal<double>(random, count, 1);
    y.array() -= y.mean();
    sums.H = Z.transpose() * Z;
    sums.h = Z.transpose() * y;
    sums.yy = y.squaredNorm();
    sums.weight = static_cast<double>(count);
  }

  [[nodiscard]] std::vector<VarianceBlock> blocks(const std::vector<double>& thetas) const {
    std::vector<VarianceBlock> result(2);
    result[0] = {0, 5, {{&factors[0], &covariances[0], thetas[0]}, {&factors[1], &covariances[1], thetas[1]}}};
    result[1] = {5, 4, {{&factors[2], &covariances[2], thetas[2]}}};
    return result;
  }

  [[nodiscard]] Matrix<double> prior(const std::vector<double>& thetas) const {
    Matrix<double> C = Matrix<double>::Zero(9, 9);
    C.topLeftCorner(5, 5) = thetas[0] * covariances[0] + thetas[1] * covariances[1];
    C.bottomRightCorner(4, 4) = thetas[2] * covariances[2];
    return C;
  }

  /// Restricted log-likelihood of centered targets: rows span count - 1 dimensions.
  [[nodiscard]] double log_evidence(const std::vector<double>& thetas, double s2) const {
    const Index count = y.size();
    const Matrix<double> V = s2 * Matrix<double>::Identity(count, count) + Z * prior(thetas) * Z.transpose();
    const Eigen::LLT<Matrix<double>> cholesky(V);
    const double log_det = 2 * Matrix<double>(cholesky.matrixL()).diagonal().array().log().sum();
    // The direction of the mean has variance s2 and no residual.
    return -0.5 * (log_det - std::log(s2) + y.dot(cholesky.solve(y)));
  }

  Matrix<double> Z;
  Vector<double> y;
  std::vector<RowMajorMatrix<double>> factors;
  std::vector<RowMajorMatrix<double>> covariances;
  CenteredSums sums;
};

VarianceFit solve_once(const DenseProblem& problem, const std::vector<double>& thetas, double s2) {
  std::vector<VarianceBlock> blocks = problem.blocks(thetas);
  VarianceOptions options;
  options.max_iterations = 1;
  return estimate_variances(problem.sums, blocks, s2, options);
}

const std::vector<double> thetas{0.5, 0.2, 0.4};

TEST(VarianceComponents, LogEvidenceEqualsDenseFormulaUpToConstant) {
  const DenseProblem problem(1);
  const std::vector<double> other{0.1, 0.7, 1.5};
  const double expected = problem.log_evidence(other, 2.5) - problem.log_evidence(thetas, 3);
  const double actual = solve_once(problem, other, 2.5).log_evidence - solve_once(problem, thetas, 3).log_evidence;
  EXPECT_NEAR(actual, expected, 1e-4);
}

TEST(VarianceComponents, PosteriorEqualsDenseFormula) {
  const DenseProblem problem(2);
  const double s2 = 3;
  const VarianceFit fit = solve_once(problem, thetas, s2);
  const Matrix<double> C = problem.prior(thetas);
  const Matrix<double> V = s2 * Matrix<double>::Identity(60, 60) + problem.Z * C * problem.Z.transpose();
  const Matrix<double> gain = C * problem.Z.transpose() * V.inverse();
  EXPECT_LT((fit.gamma - gain * problem.y).norm(), 1e-4 * fit.gamma.norm());
  EXPECT_NEAR(fit.rss, (problem.y - problem.Z * fit.gamma).squaredNorm(), 1e-6 * problem.sums.yy);
  EXPECT_NEAR(fit.effective_dof, (problem.Z * gain).trace(), 1e-4);
  // posterior covariance F T'T F'
  Matrix<double> F = Matrix<double>::Zero(9, fit.root.rows());
  F.topLeftCorner(5, fit.factors[0].cols()) = fit.factors[0];
  F.bottomRightCorner(4, fit.factors[1].cols()) = fit.factors[1];
  const Matrix<double> covariance = F * fit.root.transpose() * fit.root * F.transpose();
  EXPECT_LT((covariance - (C - gain * problem.Z * C)).norm(), 1e-4 * covariance.norm());
}

TEST(VarianceComponents, GradientOfEvidenceVanishesAtConvergence) {
  const DenseProblem problem(3, 200);
  std::vector<VarianceBlock> blocks = problem.blocks(thetas);
  double s2 = 3;
  VarianceOptions options;
  options.max_iterations = 100;
  for (int restart = 0; restart < 60; ++restart)
    s2 = estimate_variances(problem.sums, blocks, s2, options).noise_variance;
  const std::vector<double> estimates{blocks[0].components[0].theta, blocks[0].components[1].theta,
                                      blocks[1].components[0].theta};
  constexpr double step = 1e-3;
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<double> up = estimates;
    std::vector<double> down = estimates;
    up[c] *= std::exp(step);
    down[c] *= std::exp(-step);
    EXPECT_NEAR((problem.log_evidence(up, s2) - problem.log_evidence(down, s2)) / (2 * step), 0, 0.1) << c;
  }
  EXPECT_NEAR(
      (problem.log_evidence(estimates, s2 * std::exp(step)) - problem.log_evidence(estimates, s2 * std::exp(-step))) /
          (2 * step),
      0, 0.1);
}

TEST(VarianceComponents, TiedComponentsShareOneVariance) {
  const DenseProblem problem(4);
  std::vector<VarianceBlock> blocks = problem.blocks({0.3, 0.2, 0.3});
  blocks[0].components[0].tie = 7;
  blocks[1].components[0].tie = 7;
  VarianceOptions options;
  options.max_iterations = 6;
  estimate_variances(problem.sums, blocks, 3, options);
  EXPECT_DOUBLE_EQ(blocks[0].components[0].theta, blocks[1].components[0].theta);
}

TEST(VarianceComponents, FixedNoiseStaysFixed) {
  const DenseProblem problem(5);
  std::vector<VarianceBlock> blocks = problem.blocks(thetas);
  VarianceOptions options;
  options.is_noise_fixed = true;
  EXPECT_EQ(estimate_variances(problem.sums, blocks, 2.5, options).noise_variance, 2.5);
}

TEST(VarianceComponents, ZeroTargetsGiveZeroCoefficients) {
  DenseProblem problem(6);
  problem.sums.h.setZero();
  problem.sums.yy = 0;
  std::vector<VarianceBlock> blocks = problem.blocks(thetas);
  const VarianceFit fit = estimate_variances(problem.sums, blocks, 1e-6, {});
  EXPECT_TRUE(fit.gamma.allFinite());
  EXPECT_EQ(fit.gamma.norm(), 0);
}

}  // namespace
}  // namespace dyad
