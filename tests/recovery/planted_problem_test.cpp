#include "recovery/planted_problem.h"

#include <cmath>
#include <stdexcept>
#include <tuple>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

PlantedOptions small_problem() {
  PlantedOptions options;
  options.dim = 12;
  options.rank = 3;
  options.condition = 5;
  return options;
}

DenseBlock<double> rows_of(const PlantedProblem& problem, Index first, Index count, int threads = 2) {
  ThreadPool pool(threads);
  DenseBlock<double> block;
  problem.read(first, count, pool, block);
  return block;
}

TEST(Planted, TruthIsAsPromised) {
  const PlantedProblem problem(small_problem());
  const Model<double>& truth = problem.truth();
  const auto U = as_tall(truth.factors, 12, 3);
  EXPECT_TRUE((U.transpose() * U).isIdentity(1e-13));
  EXPECT_NEAR(as_vector(truth.weights).norm(), 1, 1e-14);
  EXPECT_NEAR(truth.spectrum[0], 1, 1e-15);
  EXPECT_NEAR(truth.spectrum[1], -0.6, 1e-15);
  EXPECT_NEAR(truth.spectrum[2], 0.2, 1e-15);
  EXPECT_EQ(truth.intercept, 0);

  PlantedOptions positive = small_problem();
  positive.signs = Signs::positive;
  EXPECT_GT(PlantedProblem(positive).truth().spectrum[1], 0);
  PlantedOptions sensing = small_problem();
  sensing.kind = Kind::sensing;
  EXPECT_EQ(as_vector(PlantedProblem(sensing).truth().weights).norm(), 0);
}

TEST(Planted, RowsDependOnTheSeedAndTheirNumberAlone) {
  PlantedOptions options = small_problem();
  options.noise = 0.3;
  options.residual = 0.05;
  const PlantedProblem problem(options);
  const auto whole = rows_of(problem, 0, 100, 1);
  for (const int threads : {1, 2, 3}) {
    const auto part = rows_of(PlantedProblem(options), 37, 40, threads);
    for (Index i = 0; i < 40; ++i) {
      EXPECT_EQ(part.targets[static_cast<std::size_t>(i)], whole.targets[static_cast<std::size_t>(37 + i)]);
      EXPECT_EQ(part.view().row(i)[5], whole.view().row(37 + i)[5]);
    }
  }
  options.seed = 2;
  EXPECT_NE(rows_of(PlantedProblem(options), 0, 1).values[0], whole.values[0]);
}

TEST(Planted, TargetsAreTheModelOfTheTruth) {
  PlantedOptions options = small_problem();
  options.intercept = 2.5;
  const PlantedProblem problem(options);
  const auto block = rows_of(problem, 1000, 50);
  const Tall<double> X = as_tall(block.values, 50, 12);
  EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
}

TEST(Planted, BilinearTargetsAreTheModelOfTheTruth) {
  PlantedOptions options = small_problem();
  options.kind = Kind::bilinear;
  options.right_dim = 7;
  const PlantedProblem problem(options);
  EXPECT_EQ(problem.truth().left_dim, 12);
  EXPECT_NEAR(as_vector(problem.truth().weights).norm(), 1, 1e-14);
  EXPECT_GT(problem.truth().spectrum[1], 0);
  const auto block = rows_of(problem, 1000, 50);
  const Tall<double> X = as_tall(block.values, 50, 19);
  EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
}

TEST(Planted, DiagonalIsLeftOutOrFree) {
  PlantedOptions options = small_problem();
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::free}) {
    options.diagonal = diagonal;
    const PlantedProblem problem(options);
    const auto block = rows_of(problem, 0, 50);
    const Tall<double> X = as_tall(block.values, 50, 12);
    EXPECT_LT((as_vector(block.targets) - test::brute_force_predictions(problem.truth(), X)).norm(), 1e-13);
    const Eigen::VectorXd own =
        test::dense_interactions(problem.truth()).diagonal() + as_vector(problem.truth().squares);
    EXPECT_NEAR(own.norm(), diagonal == Diagonal::zero ? 0 : 1, 1e-13);
  }
}

/// The p-th moment of min(N(0,1), 0.1), standardised, by the midpoint rule.
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

TEST(Planted, FeaturesAreStandardisedWithTheMomentsOfTheirDistribution) {
  const std::tuple<Features, double, double> cases[] = {
      {Features::gaussian, 0, 3},
      {Features::uniform, 0, 1.8},
      {Features::skewed, capped_normal_moment(3), capped_normal_moment(4)},
      {Features::rademacher, 0, 1}};
  for (const auto& [features, third, fourth] : cases) {
    PlantedOptions options = small_problem();
    options.features = features;
    const auto block = rows_of(PlantedProblem(options), 0, 40000);
    const auto x = as_vector(block.values).array();
    EXPECT_NEAR(x.mean(), 0, 0.01);
    EXPECT_NEAR(x.square().mean(), 1, 0.02);
    EXPECT_NEAR(x.cube().mean(), third, 0.05);
    EXPECT_NEAR(x.square().square().mean(), fourth, 0.2);
  }
}

TEST(Planted, NoiseHasItsStandardDeviation) {
  PlantedOptions options = small_problem();
  const auto clean = rows_of(PlantedProblem(options), 0, 20000);
  options.noise = 0.5;
  const auto noisy = rows_of(PlantedProblem(options), 0, 20000);
  EXPECT_EQ(clean.values, noisy.values);
  const Eigen::VectorXd noise = as_vector(noisy.targets) - as_vector(clean.targets);
  EXPECT_NEAR(noise.mean(), 0, 5 * 0.5 / std::sqrt(20000));
  EXPECT_NEAR(std::sqrt(noise.squaredNorm() / 20000), 0.5, 5 * 0.5 / std::sqrt(40000));
}

/// What lies beyond rank k is a quadratic form R with |R|_2 <= residual, R U* = 0, and close to full size.
TEST(Planted, ResidualSpectrumLeavesTheRankKPartAlone) {
  PlantedOptions options = small_problem();
  const PlantedProblem problem(options);
  constexpr Index dim = 12;
  constexpr Index unknowns = dim * (dim + 1) / 2;
  const auto clean = rows_of(problem, 0, 2 * unknowns);
  options.residual = 0.1;
  const auto rough = rows_of(PlantedProblem(options), 0, 2 * unknowns);
  const Eigen::VectorXd y = as_vector(rough.targets) - as_vector(clean.targets);

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
  EXPECT_LT((R * as_tall(problem.truth().factors, dim, 3)).norm(), 1e-10);
  const Eigen::VectorXd sizes = R.selfadjointView<Eigen::Lower>().eigenvalues().cwiseAbs();
  EXPECT_LE(sizes.maxCoeff(), 0.1 + 1e-10);
  EXPECT_GT(sizes.norm(), 0.5 * 0.1 * std::sqrt(dim - 3));
}

TEST(Planted, BilinearResidualSpectrumLeavesTheRankKPartAlone) {
  PlantedOptions options;
  options.kind = Kind::bilinear;
  options.dim = 6;
  options.right_dim = 8;
  options.rank = 2;
  const PlantedProblem problem(options);
  const auto clean = rows_of(problem, 0, 120);
  options.residual = 0.1;
  const auto rough = rows_of(PlantedProblem(options), 0, 120);
  const Eigen::VectorXd y = as_vector(rough.targets) - as_vector(clean.targets);
  Eigen::MatrixXd products(120, 48);
  for (Index row = 0; row < 120; ++row)
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 8; ++j) products(row, 8 * i + j) = clean.view().row(row)[i] * clean.view().row(row)[6 + j];
  const Eigen::VectorXd solved = products.colPivHouseholderQr().solve(y);
  EXPECT_LT((products * solved - y).norm(), 1e-10);
  const Eigen::MatrixXd R = Eigen::Map<const Tall<double>>(solved.data(), 6, 8);
  const auto factors = as_tall(problem.truth().factors, 14, 2);
  EXPECT_LT((factors.topRows(6).transpose() * R).norm() + (R * factors.bottomRows(8)).norm(), 1e-10);
  const double size = Eigen::JacobiSVD<Eigen::MatrixXd>(R).singularValues()[0];
  EXPECT_LE(size, 0.1 + 1e-10);
  EXPECT_GT(size, 0.05);
}

TEST(Planted, SingleAndDoublePrecisionAreTheSameRows) {
  const PlantedProblem problem(small_problem());
  ThreadPool pool(1);
  DenseBlock<float> block;
  problem.read(5, 10, pool, block);
  const auto expected = rows_of(problem, 5, 10);
  for (std::size_t i = 0; i < block.values.size(); ++i)
    EXPECT_EQ(block.values[i], static_cast<float>(expected.values[i]));
}

TEST(Planted, RefusesImpossibleProblems) {
  const auto refused = [](auto&& change) {
    PlantedOptions options = small_problem();
    change(options);
    EXPECT_THROW(options.validate(), std::invalid_argument);
    EXPECT_THROW(PlantedProblem{options}, std::invalid_argument);
  };
  refused([](PlantedOptions& options) { options.rank = 0; });
  refused([](PlantedOptions& options) { options.rank = 13; });
  refused([](PlantedOptions& options) { options.dim = 0; });
  refused([](PlantedOptions& options) { options.noise = -1; });
  refused([](PlantedOptions& options) { options.noise = NAN; });
  refused([](PlantedOptions& options) { options.condition = 0.5; });
  refused([](PlantedOptions& options) { options.residual = 0.2; });
  refused([](PlantedOptions& options) { options.residual = NAN; });
  refused([](PlantedOptions& options) { options.intercept = INFINITY; });
  refused([](PlantedOptions& options) { options.kind = Kind::phase; });
  refused([](PlantedOptions& options) { options.kind = Kind::bilinear; });
  refused([](PlantedOptions& options) { options.right_dim = 5; });
  refused([](PlantedOptions& options) { options.kind = Kind::bilinear, options.right_dim = 2; });
  refused([](PlantedOptions& options) { options.diagonal = Diagonal::zero, options.residual = 0.01; });
}

}  // namespace
}  // namespace dyad
