#include "solvers/moment/change_estimator.h"

#include <tuple>

#include <gtest/gtest.h>

#include "recovery/planted_problem.h"
#include "support.h"

namespace dyad {
namespace {

/// Features with a few values each, all combinations of which can be enumerated: then sums are exact expectations.
struct Discrete {
  std::vector<double> values;
  std::vector<int> counts;  ///< how often each value occurs, so that the mean is 0 and the variance 1
};

const Discrete rademacher{{-1, 1}, {1, 1}};
const Discrete skewed_two_valued{{-2, 0.5}, {1, 4}};
const Discrete three_valued{{-std::sqrt(2.0), 0, std::sqrt(2.0)}, {1, 2, 1}};
const Discrete skewed_three_valued{{-1, 0, 2}, {4, 1, 2}};  // mean 0, variance 12/7, standardised below

Discrete standardised(Discrete feature) {
  double mean = 0, square = 0, total = 0;
  for (std::size_t v = 0; v < feature.values.size(); ++v) {
    mean += feature.counts[v] * feature.values[v];
    square += feature.counts[v] * feature.values[v] * feature.values[v];
    total += feature.counts[v];
  }
  mean /= total;
  for (double& value : feature.values) value = (value - mean) / std::sqrt(square / total - mean * mean);
  return feature;
}

/// Every combination of values, as often as its counts say.
Tall<double> all_combinations(const std::vector<Discrete>& features) {
  std::vector<std::vector<double>> rows{{}};
  for (const Discrete& feature : features) {
    std::vector<std::vector<double>> longer;
    for (const auto& row : rows)
      for (std::size_t v = 0; v < feature.values.size(); ++v)
        for (int copy = 0; copy < feature.counts[v]; ++copy) {
          longer.push_back(row);
          longer.back().push_back(feature.values[v]);
        }
    rows = std::move(longer);
  }
  Tall<double> X(static_cast<Index>(rows.size()), static_cast<Index>(features.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < features.size(); ++j) X(static_cast<Index>(i), static_cast<Index>(j)) = rows[i][j];
  return X;
}

struct MeasuredChange {
  Change change;
  Tall<double> Z;
};

/// The change that the estimator reads from all combinations, for rows whose targets are those of the truth.
MeasuredChange measure(const MomentOptions& options, const Tall<double>& X, const Model<double>& model,
                       const Model<double>& truth) {
  test::OwnedRows<double> rows(X, std::vector<double>(static_cast<std::size_t>(X.rows())));
  as_vector(rows.targets) = test::brute_force_predictions(truth, X);
  Random random(9, 0);
  MeasuredChange measured{{}, random_normal<double>(random, model.dim(), 2)};
  ChangeEstimator estimator(options);
  ThreadPool pool(2);
  MomentAccumulator<double> accumulator(pool, model, measured.Z, estimator.wanted());
  accumulator.add(rows.dense());
  estimator.learn(accumulator.features());
  measured.change = estimator.change(accumulator.total(), measured.Z);
  return measured;
}

MomentOptions estimated(Index dim, Diagonal diagonal) {
  MomentOptions options;
  options.shape.dim = dim;
  options.shape.rank = 2;
  options.moments = Moments::estimated;
  options.shape.diagonal = diagonal;
  return options;
}

void set_diagonal(Model<double>& model, Diagonal diagonal, std::uint64_t seed) {
  if (diagonal == Diagonal::tied) return;
  Random random(seed, 2);
  model.squares.resize(static_cast<std::size_t>(model.dim()));
  as_vector(model.squares) = -test::dense_interactions(model).diagonal();
  if (diagonal == Diagonal::free) as_vector(model.squares) += random_normal<double>(random, model.dim(), 1);
}

Eigen::VectorXd squares_of(const Model<double>& model) {
  Eigen::VectorXd squares = test::dense_interactions(model).diagonal();
  if (!model.squares.empty()) squares += as_vector(model.squares);
  return squares;
}

/// For features with more than two values the changes are exact: no sampling, no approximation.
TEST(Change, IsExactOverAllCombinations) {
  const std::vector<Discrete> features{three_valued, standardised(skewed_three_valued), three_valued,
                                       standardised(skewed_three_valued), three_valued};
  const Tall<double> X = all_combinations(features);
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    auto model = test::random_model<double>(5, 2, 1);
    auto truth = test::random_model<double>(5, 2, 2);
    set_diagonal(model, diagonal, 1);
    set_diagonal(truth, diagonal, 2);
    const MeasuredChange measured = measure(estimated(5, diagonal), X, model, truth);

    Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
    if (diagonal != Diagonal::tied) dM.diagonal().setZero();
    EXPECT_LT((measured.change.dM_times_Z - dM * measured.Z).norm(), 1e-10);
    EXPECT_LT((measured.change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm(), 1e-10);
    const Eigen::VectorXd expected_squares =
        diagonal == Diagonal::free ? Eigen::VectorXd(squares_of(truth) - squares_of(model)) : Eigen::VectorXd();
    ASSERT_EQ(measured.change.dM_diagonal.size(), expected_squares.size());
    EXPECT_LT((measured.change.dM_diagonal - expected_squares).norm(), 1e-10);
  }
}

/// The square of a two-valued feature is a linear term: with no diagonal the rest is exact.
TEST(Change, OfTwoValuedFeaturesLeavesTheDiagonalAlone) {
  const Tall<double> X =
      all_combinations({rademacher, skewed_two_valued, rademacher, skewed_two_valued, rademacher, rademacher});
  auto model = test::random_model<double>(6, 2, 1);
  auto truth = test::random_model<double>(6, 2, 2);
  set_diagonal(model, Diagonal::zero, 1);
  set_diagonal(truth, Diagonal::zero, 2);
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::tied, Diagonal::free}) {
    const MeasuredChange measured = measure(estimated(6, diagonal), X, model, truth);
    Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
    dM.diagonal().setZero();
    EXPECT_LT((measured.change.dM_times_Z - dM * measured.Z).norm(), 1e-10);
    EXPECT_LT((measured.change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm(), 1e-10);
    EXPECT_EQ(measured.change.dM_diagonal.norm(), 0);
  }
}

TEST(Change, IsExactForBilinearFeaturesOfAnyKind) {
  const Tall<double> X = all_combinations({rademacher, three_valued, standardised(skewed_three_valued),
                                           skewed_two_valued, standardised(skewed_three_valued)});
  const auto model = test::random_model<double>(5, 2, 1, 2);
  const auto truth = test::random_model<double>(5, 2, 2, 2);
  MomentOptions options = estimated(5, Diagonal::tied);
  options.shape.left_dim = 2;
  const MeasuredChange measured = measure(options, X, model, truth);
  const Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
  EXPECT_LT((measured.change.dM_times_Z.topRows(2) - dM * measured.Z.bottomRows(3)).norm(), 1e-10);
  EXPECT_LT((measured.change.dM_times_Z.bottomRows(3) - dM.transpose() * measured.Z.topRows(2)).norm(), 1e-10);
  EXPECT_LT((measured.change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm(), 1e-10);
}

/// Over many batches of sampled rows the estimates average to the change itself, for every feature distribution.
class Unbiased : public testing::TestWithParam<std::tuple<Features, Moments, Diagonal>> {};

TEST_P(Unbiased, ByAveraging) {
  const auto [features, moments, diagonal] = GetParam();
  constexpr Index dim = 6;
  constexpr Index batch = 2000;
  constexpr int batches = 200;
  MomentOptions options = estimated(dim, diagonal);
  options.moments = moments;
  auto model = test::random_model<double>(dim, 2, 1);
  auto truth = test::random_model<double>(dim, 3, 2);
  set_diagonal(model, diagonal, 1);
  set_diagonal(truth, diagonal, 2);
  PlantedOptions planted;
  planted.dim = dim;
  planted.rank = 1;
  planted.features = features;
  const PlantedProblem source(planted);
  ThreadPool pool(2);

  Tall<double> mean = Tall<double>::Zero(dim, 3);
  Tall<double> mean_square = Tall<double>::Zero(dim, 3);
  Tall<double> expected(dim, 3);
  for (int b = 0; b < batches; ++b) {
    DenseBlock<double> block;
    source.read(b * batch, batch, pool, block);
    const MeasuredChange measured = measure(options, as_tall(block.values, batch, dim), model, truth);
    Tall<double> estimate(dim, 3);
    estimate << measured.change.dM_times_Z, measured.change.dw;
    mean += estimate / batches;
    mean_square += estimate.cwiseAbs2() / batches;
    Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
    if (diagonal != Diagonal::tied) dM.diagonal().setZero();
    expected << dM * measured.Z, as_vector(truth.weights) - as_vector(model.weights);
  }
  const Tall<double> standard_error = ((mean_square - mean.cwiseAbs2()) / batches).cwiseSqrt();
  // Moments estimated from a batch of n rows leave a bias of order 1/n; sampling leaves 1/sqrt(n x batches).
  EXPECT_LT(((mean - expected).cwiseAbs() - 5 * standard_error).maxCoeff(), 0.01);
  EXPECT_LT(standard_error.maxCoeff(), 0.05);
}

INSTANTIATE_TEST_SUITE_P(Features, Unbiased,
                         testing::Values(std::tuple{Features::gaussian, Moments::gaussian, Diagonal::tied},
                                         std::tuple{Features::gaussian, Moments::gaussian, Diagonal::free},
                                         std::tuple{Features::gaussian, Moments::estimated, Diagonal::tied},
                                         std::tuple{Features::uniform, Moments::estimated, Diagonal::tied},
                                         std::tuple{Features::skewed, Moments::estimated, Diagonal::tied},
                                         std::tuple{Features::skewed, Moments::estimated, Diagonal::zero},
                                         std::tuple{Features::rademacher, Moments::estimated, Diagonal::zero}));

TEST(Change, RemembersTheFeaturesOfAllBatches) {
  const auto rows = test::random_rows<double>(600, 5, 1);
  const auto model = test::random_model<double>(5, 2, 1);
  ThreadPool pool(1);
  ChangeEstimator in_parts(estimated(5, Diagonal::tied));
  ChangeEstimator at_once(estimated(5, Diagonal::tied));
  Random random(3, 0);
  const Tall<double> Z = random_normal<double>(random, 5, 3);
  const auto accumulated = [&](Index first, Index count) {
    MomentAccumulator<double> accumulator(pool, model, Z, at_once.wanted());
    accumulator.add(rows.dense().slice(first, count));
    return accumulator;
  };
  at_once.learn(accumulated(0, 600).features());
  in_parts.learn(accumulated(0, 250).features());
  in_parts.learn(accumulated(250, 350).features());
  const auto sums = accumulated(0, 600).total();
  EXPECT_LT((at_once.change(sums, Z).dM_times_Z - in_parts.change(sums, Z).dM_times_Z).norm(), 1e-12);
}

/// A feature that is almost two-valued has a square that is almost linear: its determinant is small but not 0.
TEST(Change, OfAlmostTwoValuedFeaturesLeavesTheDiagonalAlone) {
  const Discrete almost = standardised({{-1, -0.95, 0.95, 1}, {1, 1, 1, 1}});
  const Tall<double> X = all_combinations({almost, three_valued, almost, three_valued});
  const auto model = test::random_model<double>(4, 2, 1);
  const auto truth = test::random_model<double>(4, 2, 2);
  const MeasuredChange measured = measure(estimated(4, Diagonal::free), X, model, truth);
  EXPECT_EQ(measured.change.dM_diagonal[0], 0);
  EXPECT_EQ(measured.change.dM_diagonal[2], 0);
  EXPECT_NE(measured.change.dM_diagonal[1], 0);
}

TEST(Change, GaussianFormulasAreTheSameWithAndWithoutTheSquares) {
  const auto rows = test::random_rows<double>(100, 5, 1);
  const auto model = test::random_model<double>(5, 2, 1);
  MomentOptions options = estimated(5, Diagonal::tied);
  options.moments = Moments::gaussian;
  const ChangeEstimator estimator(options);
  ThreadPool pool(1);
  Random random(3, 0);
  const Tall<double> Z = random_normal<double>(random, 5, 3);
  MomentAccumulator<double> with(pool, model, Z, {.squares = true});
  MomentAccumulator<double> without(pool, model, Z);
  with.add(rows.dense());
  without.add(rows.dense());
  const auto one = estimator.change(with.total(), Z);
  const auto other = estimator.change(without.total(), Z);
  EXPECT_LT((one.dM_times_Z - other.dM_times_Z).norm(), 1e-12);
  EXPECT_LT((one.dw - other.dw).norm(), 1e-12);
}

}  // namespace
}  // namespace dyad
