#include "recovery/planted_problem.h"

#include <cmath>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

PlantedOptions example_problem() {
  PlantedOptions options;
  options.dim = 12;
  options.rank = 3;
  options.condition = 5;
  return options;
}

DenseBlock<double> rows_of(const PlantedProblem& problem, Index first, Index count, int threads = 2) {
  ThreadPool pool(threads);
  DenseBlock<double> block;
  problem.generate(first, count, pool, block);
  return block;
}

TEST(PlantedProblem, TruthHasRequestedSpectrumAndNorms) {
  const PlantedProblem problem(example_problem());
  const Model<double>& truth = problem.truth();
  const auto U = as_row_major(truth.factors, 12, 3);
  EXPECT_TRUE((U.transpose() * U).isIdentity(1e-13));
  EXPECT_NEAR(as_vector(truth.weights).norm(), 1, 1e-14);
  EXPECT_NEAR(truth.spectrum[0], 1, 1e-15);
  EXPECT_NEAR(truth.spectrum[1], -0.6, 1e-15);
  EXPECT_NEAR(truth.spectrum[2], 0.2, 1e-15);
  EXPECT_EQ(truth.intercept, 0);

  PlantedOptions positive = example_problem();
  positive.signs = Signs::positive;
  EXPECT_GT(PlantedProblem(positive).truth().spectrum[1], 0);
  PlantedOptions sensing = example_problem();
  sensing.kind = Kind::sensing;
  EXPECT_EQ(as_vector(PlantedProblem(sensing).truth().weights).norm(), 0);
}

TEST(PlantedProblem, RowsDependOnSeedAndIndexOnly) {
  PlantedOptions options = example_problem();
  options.noise = 0.3;
  options.residual = 0.05;
  const PlantedProblem problem(options);
  const auto all_rows = rows_of(problem, 0, 100, 1);
  for (const int threads : {1, 2, 3}) {
    const auto subset = rows_of(PlantedProblem(options), 37, 40, threads);
    for (Index i = 0; i < 40; ++i) {
      EXPECT_EQ(subset.targets[static_cast<std::size_t>(i)], all_rows.targets[static_cast<std::size_t>(37 + i)]);
      EXPECT_EQ(subset.view().row(i)[5], all_rows.view().row(37 + i)[5]);
    }
  }
  options.seed = 2;
  EXPECT_NE(rows_of(PlantedProblem(options), 0, 1).values[0], all_rows.values[0]);
}

TEST(PlantedProblem, TargetsEqualPredictionsOfTruth) {
  PlantedOptions options = example_problem();
  options.intercept = 2.5;
  const PlantedProblem problem(options);
  const auto block = rows_of(problem, 1000, 50);
  const RowMajorMatrix<double> X = as_row_major(block.values, 50, 12);
  EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
}

TEST(PlantedProblem, BilinearTargetsEqualPredictionsOfTruth) {
  PlantedOptions options = example_problem();
  options.kind = Kind::bilinear;
  options.right_dim = 7;
  const PlantedProblem problem(options);
  EXPECT_EQ(problem.truth().left_dim, 12);
  EXPECT_NEAR(as_vector(problem.truth().weights).norm(), 1, 1e-14);
  EXPECT_GT(problem.truth().spectrum[1], 0);
  const auto block = rows_of(problem, 1000, 50);
  const RowMajorMatrix<double> X = as_row_major(block.values, 50, 19);
  EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
}

TEST(PlantedProblem, DiagonalIsZeroOrFree) {
  PlantedOptions options = example_problem();
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::free}) {
    options.diagonal = diagonal;
    const PlantedProblem problem(options);
    const auto block = rows_of(problem, 0, 50);
    const RowMajorMatrix<double> X = as_row_major(block.values, 50, 12);
    EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
    const Eigen::VectorXd squares =
        test::dense_interactions(problem.truth()).diagonal() + as_vector(problem.truth().squares);
    EXPECT_NEAR(squares.norm(), diagonal == Diagonal::zero ? 0 : 1, 1e-13);
  }
}

/// p-th moment of the standardized min(N(0,1), 0.1), by the midpoint rule.
double capped_normal_moment(int p) {
  const auto expectation = [](auto&& f) {
    double sum = 0;
    constexpr double step = 1e-4;
    for (double z = -10 + step / 2; z < 10; z += step)
      sum += f(std::min(z, 0.1)) * std::exp(-z * z / 2) / std::sqrt(2 * M_PI) * step;
    return sum;
  };
  const double mean = expectation([](double x) { return x; });
  const double deviation = std::sqrt(expectation([&](double x) { return (x - mean) * (x - mean); }));
  return expectation([&](double x) { return std::pow((x - mean) / deviation, p); });
}

TEST(PlantedProblem, FeaturesAreStandardizedAndHaveMomentsOfDistribution) {
  const std::tuple<FeatureDistribution, double, double> cases[] = {
      {FeatureDistribution::gaussian, 0, 3},
      {FeatureDistribution::uniform, 0, 1.8},
      {FeatureDistribution::skewed, capped_normal_moment(3), capped_normal_moment(4)},
      {FeatureDistribution::rademacher, 0, 1}};
  for (const auto& [features, third, fourth] : cases) {
    PlantedOptions options = example_problem();
    options.features = features;
    const auto block = rows_of(PlantedProblem(options), 0, 40000);
    const auto x = as_vector(block.values).array();
    EXPECT_NEAR(x.mean(), 0, 0.01);
    EXPECT_NEAR(x.square().mean(), 1, 0.02);
    EXPECT_NEAR(x.cube().mean(), third, 0.05);
    EXPECT_NEAR(x.square().square().mean(), fourth, 0.2);
  }
}

TEST(PlantedProblem, NoiseHasRequestedStandardDeviation) {
  PlantedOptions options = example_problem();
  const auto clean = rows_of(PlantedProblem(options), 0, 20000);
  options.noise = 0.5;
  const auto noisy = rows_of(PlantedProblem(options), 0, 20000);
  EXPECT_EQ(clean.values, noisy.values);
  const Eigen::VectorXd noise = as_vector(noisy.targets) - as_vector(clean.targets);
  EXPECT_NEAR(noise.mean(), 0, 5 * 0.5 / std::sqrt(20000));
  EXPECT_NEAR(std::sqrt(noise.squaredNorm() / 20000), 0.5, 5 * 0.5 / std::sqrt(40000));
}

/// The residual spectrum is a quadratic form R with |R|_2 <= residual, R U* = 0, and a Frobenius norm of at least half
/// of its maximum.
TEST(PlantedProblem, ResidualSpectrumIsOrthogonalToRankKPart) {
  PlantedOptions options = example_problem();
  const PlantedProblem problem(options);
  constexpr Index dim = 12;
  constexpr Index unknowns = dim * (dim + 1) / 2;
  const auto clean = rows_of(problem, 0, 2 * unknowns);
  options.residual = 0.1;
  const auto with_residual = rows_of(PlantedProblem(options), 0, 2 * unknowns);
  const Eigen::VectorXd y = as_vector(with_residual.targets) - as_vector(clean.targets);

  Eigen::MatrixXd products(2 * unknowns, unknowns);
  for (Index row = 0; row < 2 * unknowns; ++row) {
    const double* x = clean.view().row(row);
    Index column = 0;
    for (Index i = 0; i < dim; ++i)
      for (Index j = i; j < dim; ++j) products(row, column++) = (i == j ? 1 : 2) * x[i] * x[j];
  }
  const Eigen::VectorXd solved = products.colPivHouseholderQr().solve(y);
  EXPECT_LT((products * solved - y).norm(), 1e-10);
  Eigen::MatrixXd R(dim, dim);
  Index entry = 0;
  for (Index i = 0; i < dim; ++i)
    for (Index j = i; j < dim; ++j) R(i, j) = R(j, i) = solved[entry++];
  EXPECT_LT((R * as_row_major(problem.truth().factors, dim, 3)).norm(), 1e-10);
  const Eigen::VectorXd sizes = R.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs();
  EXPECT_LE(sizes.maxCoeff(), 0.1 + 1e-10);
  EXPECT_GT(sizes.norm(), 0.5 * 0.1 * std::sqrt(dim - 3));
}

TEST(PlantedProblem, BilinearResidualSpectrumIsOrthogonalToRankKPart) {
  PlantedOptions options;
  options.kind = Kind::bilinear;
  options.dim = 6;
  options.right_dim = 8;
  options.rank = 2;
  const PlantedProblem problem(options);
  const auto clean = rows_of(problem, 0, 120);
  options.residual = 0.1;
  const auto with_residual = rows_of(PlantedProblem(options), 0, 120);
  const Eigen::VectorXd y = as_vector(with_residual.targets) - as_vector(clean.targets);
  Eigen::MatrixXd products(120, 48);
  for (Index row = 0; row < 120; ++row)
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 8; ++j) products(row, 8 * i + j) = clean.view().row(row)[i] * clean.view().row(row)[6 + j];
  const Eigen::VectorXd solved = products.colPivHouseholderQr().solve(y);
  EXPECT_LT((products * solved - y).norm(), 1e-10);
  const Eigen::MatrixXd R = Eigen::Map<const RowMajorMatrix<double>>(solved.data(), 6, 8);
  const auto factors = as_row_major(problem.truth().factors, 14, 2);
  EXPECT_LT((factors.topRows(6).transpose() * R).norm() + (R * factors.bottomRows(8)).norm(), 1e-10);
  const double size = Eigen::JacobiSVD<Eigen::MatrixXd>(R).singularValues()[0];
  EXPECT_LE(size, 0.1 + 1e-10);
  EXPECT_GT(size, 0.05);
}

TEST(PlantedProblem, SinglePrecisionRowsAreRoundedDoublePrecisionRows) {
  const PlantedProblem problem(example_problem());
  ThreadPool pool(1);
  DenseBlock<float> block;
  problem.generate(5, 10, pool, block);
  const auto expected = rows_of(problem, 5, 10);
  for (std::size_t i = 0; i < block.values.size(); ++i)
    EXPECT_EQ(block.values[i], static_cast<float>(expected.values[i]));
}

TEST(PlantedProblem, RejectsInvalidProblems) {
  const auto expect_rejected = [](auto&& change) {
    PlantedOptions options = example_problem();
    change(options);
    EXPECT_THROW(options.validate(), std::invalid_argument);
    EXPECT_THROW(PlantedProblem{options}, std::invalid_argument);
  };
  expect_rejected([](PlantedOptions& options) { options.rank = 0; });
  expect_rejected([](PlantedOptions& options) { options.rank = 13; });
  expect_rejected([](PlantedOptions& options) { options.dim = 0; });
  expect_rejected([](PlantedOptions& options) { options.noise = -1; });
  expect_rejected([](PlantedOptions& options) { options.noise = NAN; });
  expect_rejected([](PlantedOptions& options) { options.condition = 0.5; });
  expect_rejected([](PlantedOptions& options) { options.residual = 0.2; });
  expect_rejected([](PlantedOptions& options) { options.residual = NAN; });
  expect_rejected([](PlantedOptions& options) { options.intercept = INFINITY; });
  expect_rejected([](PlantedOptions& options) { options.kind = Kind::phase; });
  expect_rejected([](PlantedOptions& options) { options.kind = Kind::bilinear; });
  expect_rejected([](PlantedOptions& options) { options.right_dim = 5; });
  expect_rejected([](PlantedOptions& options) { options.kind = Kind::bilinear, options.right_dim = 2; });
  expect_rejected([](PlantedOptions& options) { options.diagonal = Diagonal::zero, options.residual = 0.01; });
}

}  // namespace
}  // namespace dyad
