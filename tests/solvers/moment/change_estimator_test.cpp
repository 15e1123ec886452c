#include "solvers/moment/change_estimator.h"

#include <tuple>

#include <gtest/gtest.h>

#include "recovery/planted_problem.h"
#include "support.h"

namespace dyad {
namespace {

/// Distribution of a discrete feature, with mean 0 and variance 1 unless stated otherwise. Sums over all combinations
/// of values are exact expectations.
struct DiscreteFeature {
  std::vector<double> values;
  std::vector<int> counts;  ///< relative frequency of each value
};

const DiscreteFeature rademacher{{-1, 1}, {1, 1}};
const DiscreteFeature skewed_two_valued{{-2, 0.5}, {1, 4}};
const DiscreteFeature three_valued{{-std::sqrt(2.0), 0, std::sqrt(2.0)}, {1, 2, 1}};
const DiscreteFeature skewed_three_valued{{-1, 0, 2}, {4, 1, 2}};  // mean 0, variance 12/7, standardized below

DiscreteFeature standardize(DiscreteFeature feature) {
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

/// Rows with all combinations of values, each repeated by the product of its counts.
RowMajorMatrix<double> all_combinations(const std::vector<DiscreteFeature>& features) {
  std::vector<std::vector<double>> rows{{}};
  for (const DiscreteFeature& feature : features) {
    std::vector<std::vector<double>> extended_rows;
    for (const auto& row : rows)
      for (std::size_t v = 0; v < feature.values.size(); ++v)
        for (int copy = 0; copy < feature.counts[v]; ++copy) {
          extended_rows.push_back(row);
          extended_rows.back().push_back(feature.values[v]);
        }
    rows = std::move(extended_rows);
  }
  RowMajorMatrix<double> X(static_cast<Index>(rows.size()), static_cast<Index>(features.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < features.size(); ++j) X(static_cast<Index>(i), static_cast<Index>(j)) = rows[i][j];
  return X;
}

struct MeasuredChange {
  ModelChange change;
  RowMajorMatrix<double> Z;
};

/// Change estimated from rows whose targets are the predictions of `truth`.
MeasuredChange measure(const MomentOptions& options, const RowMajorMatrix<double>& X, const Model<double>& model,
                       const Model<double>& truth) {
  test::OwnedRows<double> rows(X, std::vector<double>(static_cast<std::size_t>(X.rows())));
  as_vector(rows.targets) = test::brute_force_predictions(truth, X);
  Random random(9, 0);
  MeasuredChange measured{{}, random_normal<double>(random, model.dim(), 2)};
  ChangeEstimator estimator(options);
  ThreadPool pool(2);
  MomentAccumulator<double> accumulator(pool, model, measured.Z, estimator.required_sums());
  accumulator.add(rows.dense());
  estimator.add_feature_moments(accumulator.features());
  measured.change = estimator.estimate(accumulator.total(), measured.Z);
  return measured;
}

MomentOptions estimated_moments(Index dim, Diagonal diagonal) {
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

// The expectations are exact for features with more than two values.
TEST(ChangeEstimator, IsExactOverAllCombinations) {
  const std::vector<DiscreteFeature> features{three_valued, standardize(skewed_three_valued), three_valued,
                                              standardize(skewed_three_valued), three_valued};
  const RowMajorMatrix<double> X = all_combinations(features);
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    auto model = test::random_model<double>(5, 2, 1);
    auto truth = test::random_model<double>(5, 2, 2);
    set_diagonal(model, diagonal, 1);
    set_diagonal(truth, diagonal, 2);
    const MeasuredChange measured = measure(estimated_moments(5, diagonal), X, model, truth);

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

// The square of a two-valued feature is a linear function of it, so that dM_jj is 0. The other changes are exact.
TEST(ChangeEstimator, DiagonalChangeOfTwoValuedFeaturesIsZero) {
  const RowMajorMatrix<double> X =
      all_combinations({rademacher, skewed_two_valued, rademacher, skewed_two_valued, rademacher, rademacher});
  auto model = test::random_model<double>(6, 2, 1);
  auto truth = test::random_model<double>(6, 2, 2);
  set_diagonal(model, Diagonal::zero, 1);
  set_diagonal(truth, Diagonal::zero, 2);
  for (const Diagonal diagonal : {Diagonal::zero, Diagonal::tied, Diagonal::free}) {
    const MeasuredChange measured = measure(estimated_moments(6, diagonal), X, model, truth);
    Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
    dM.diagonal().setZero();
    EXPECT_LT((measured.change.dM_times_Z - dM * measured.Z).norm(), 1e-10);
    EXPECT_LT((measured.change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm(), 1e-10);
    EXPECT_EQ(measured.change.dM_diagonal.norm(), 0);
  }
}

TEST(ChangeEstimator, BilinearChangeIsExactForAllDistributions) {
  const RowMajorMatrix<double> X = all_combinations({rademacher, three_valued, standardize(skewed_three_valued),
                                                     skewed_two_valued, standardize(skewed_three_valued)});
  const auto model = test::random_model<double>(5, 2, 1, 2);
  const auto truth = test::random_model<double>(5, 2, 2, 2);
  MomentOptions options = estimated_moments(5, Diagonal::tied);
  options.shape.left_dim = 2;
  const MeasuredChange measured = measure(options, X, model, truth);
  const Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
  EXPECT_LT((measured.change.dM_times_Z.topRows(2) - dM * measured.Z.bottomRows(3)).norm(), 1e-10);
  EXPECT_LT((measured.change.dM_times_Z.bottomRows(3) - dM.transpose() * measured.Z.topRows(2)).norm(), 1e-10);
  EXPECT_LT((measured.change.dw - (as_vector(truth.weights) - as_vector(model.weights))).norm(), 1e-10);
}

/// The mean of the estimates over many batches of sampled rows equals the change, for each feature distribution.
class ChangeEstimatorBias : public testing::TestWithParam<std::tuple<FeatureDistribution, Moments, Diagonal>> {};

TEST_P(ChangeEstimatorBias, MeanOverBatchesEqualsTheChange) {
  const auto [features, moments, diagonal] = GetParam();
  constexpr Index dim = 6;
  constexpr Index batch = 2000;
  constexpr int batches = 200;
  MomentOptions options = estimated_moments(dim, diagonal);
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

  RowMajorMatrix<double> mean = RowMajorMatrix<double>::Zero(dim, 3);
  RowMajorMatrix<double> mean_square = RowMajorMatrix<double>::Zero(dim, 3);
  RowMajorMatrix<double> expected(dim, 3);
  for (int b = 0; b < batches; ++b) {
    DenseBlock<double> block;
    source.generate(b * batch, batch, pool, block);
    const MeasuredChange measured = measure(options, as_row_major(block.values, batch, dim), model, truth);
    RowMajorMatrix<double> estimate(dim, 3);
    estimate << measured.change.dM_times_Z, measured.change.dw;
    mean += estimate / batches;
    mean_square += estimate.cwiseAbs2() / batches;
    Eigen::MatrixXd dM = test::dense_interactions(truth) - test::dense_interactions(model);
    if (diagonal != Diagonal::tied) dM.diagonal().setZero();
    expected << dM * measured.Z, as_vector(truth.weights) - as_vector(model.weights);
  }
  const RowMajorMatrix<double> standard_error = ((mean_square - mean.cwiseAbs2()) / batches).cwiseSqrt();
  // Moments estimated from n rows have a bias of order 1/n. The sampling error is of order 1/sqrt(n batches).
  EXPECT_LT(((mean - expected).cwiseAbs() - 5 * standard_error).maxCoeff(), 0.01);
  EXPECT_LT(standard_error.maxCoeff(), 0.05);
}

INSTANTIATE_TEST_SUITE_P(FeatureDistributions, ChangeEstimatorBias,
                         testing::Values(std::tuple{FeatureDistribution::gaussian, Moments::gaussian, Diagonal::tied},
                                         std::tuple{FeatureDistribution::gaussian, Moments::gaussian, Diagonal::free},
                                         std::tuple{FeatureDistribution::gaussian, Moments::estimated, Diagonal::tied},
                                         std::tuple{FeatureDistribution::uniform, Moments::estimated, Diagonal::tied},
                                         std::tuple{FeatureDistribution::skewed, Moments::estimated, Diagonal::tied},
                                         std::tuple{FeatureDistribution::skewed, Moments::estimated, Diagonal::zero},
                                         std::tuple{FeatureDistribution::rademacher, Moments::estimated,
                                                    Diagonal::zero}));

TEST(ChangeEstimator, FeatureMomentsAccumulateOverBatches) {
  const auto rows = test::random_rows<double>(600, 5, 1);
  const auto model = test::random_model<double>(5, 2, 1);
  ThreadPool pool(1);
  ChangeEstimator two_batches(estimated_moments(5, Diagonal::tied));
  ChangeEstimator one_batch(estimated_moments(5, Diagonal::tied));
  Random random(3, 0);
  const RowMajorMatrix<double> Z = random_normal<double>(random, 5, 3);
  const auto accumulated = [&](Index first, Index count) {
    MomentAccumulator<double> accumulator(pool, model, Z, one_batch.required_sums());
    accumulator.add(rows.dense().slice(first, count));
    return accumulator;
  };
  one_batch.add_feature_moments(accumulated(0, 600).features());
  two_batches.add_feature_moments(accumulated(0, 250).features());
  two_batches.add_feature_moments(accumulated(250, 350).features());
  const auto sums = accumulated(0, 600).total();
  EXPECT_LT((one_batch.estimate(sums, Z).dM_times_Z - two_batches.estimate(sums, Z).dM_times_Z).norm(), 1e-12);
}

// The determinant of a nearly two-valued feature is small but not 0.
TEST(ChangeEstimator, DiagonalChangeOfNearlyTwoValuedFeaturesIsZero) {
  const DiscreteFeature nearly_two_valued = standardize({{-1, -0.95, 0.95, 1}, {1, 1, 1, 1}});
  const RowMajorMatrix<double> X = all_combinations({nearly_two_valued, three_valued, nearly_two_valued, three_valued});
  const auto model = test::random_model<double>(4, 2, 1);
  const auto truth = test::random_model<double>(4, 2, 2);
  const MeasuredChange measured = measure(estimated_moments(4, Diagonal::free), X, model, truth);
  EXPECT_EQ(measured.change.dM_diagonal[0], 0);
  EXPECT_EQ(measured.change.dM_diagonal[2], 0);
  EXPECT_NE(measured.change.dM_diagonal[1], 0);
}

TEST(ChangeEstimator, GaussianChangeDoesNotDependOnCollectedSquares) {
  const auto rows = test::random_rows<double>(100, 5, 1);
  const auto model = test::random_model<double>(5, 2, 1);
  MomentOptions options = estimated_moments(5, Diagonal::tied);
  options.moments = Moments::gaussian;
  const ChangeEstimator estimator(options);
  ThreadPool pool(1);
  Random random(3, 0);
  const RowMajorMatrix<double> Z = random_normal<double>(random, 5, 3);
  MomentAccumulator<double> with_squares(pool, model, Z, {.squares = true});
  MomentAccumulator<double> without_squares(pool, model, Z);
  with_squares.add(rows.dense());
  without_squares.add(rows.dense());
  const auto one = estimator.estimate(with_squares.total(), Z);
  const auto other = estimator.estimate(without_squares.total(), Z);
  EXPECT_LT((one.dM_times_Z - other.dM_times_Z).norm(), 1e-12);
  EXPECT_LT((one.dw - other.dw).norm(), 1e-12);
}

}  // namespace
}  // namespace dyad
