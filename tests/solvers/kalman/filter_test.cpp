#include "solvers/kalman/filter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::OwnedRows;
using test::random_model;
using test::random_rows;

struct Shape {
  Index left_dim = 0;
  Diagonal diagonal = Diagonal::tied;
};
constexpr Shape shapes[] = {{}, {0, Diagonal::zero}, {0, Diagonal::free}, {3, Diagonal::tied}};

KalmanOptions filter_options(const Shape& shape, Index dim = 7, Index rank = 3) {
  KalmanOptions options;
  options.shape.dim = dim;
  options.shape.left_dim = shape.left_dim;
  options.shape.rank = rank;
  options.shape.diagonal = shape.diagonal;
  options.entries_per_row = static_cast<double>(dim);
  options.square_center = 1;
  return options;
}

template <typename Scalar>
KalmanFilter<Scalar> make_filter(const KalmanOptions& options, const Prior& prior = {}, double noise = 0.5) {
  KalmanFilter<Scalar> filter(options, prior, noise);
  for (Index j = 0; j < options.shape.dim; ++j) filter.add_feature(j, 1);
  return filter;
}

template <typename Scalar>
std::vector<Scalar> learn(KalmanFilter<Scalar>& filter, const Rows<Scalar>& rows) {
  std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
  filter.learn(rows, predictions);
  return predictions;
}

std::map<std::string, std::vector<double>> state_of(KalmanFilter<double>& filter) {
  Archive archive;
  filter.archive(archive);
  return archive.arrays();
}

TEST(KalmanFilter, PredictionsEqualThoseOfItsModel) {
  for (const Shape& shape : shapes) {
    auto filter = make_filter<double>(filter_options(shape));
    const auto rows = random_rows<double>(30, 7, 1);
    learn(filter, rows.dense());
    std::vector<double> predictions(30);
    std::vector<double> variances(30);
    filter.predict(rows.dense(), predictions, variances);
    EXPECT_LT((as_vector(predictions) - test::brute_force_predictions(filter.model(), rows.X)).norm(), 1e-10);
    for (const double variance : variances) EXPECT_GT(variance, 0);
    std::vector<double> sparse(30);
    if (shape.diagonal == Diagonal::free) continue;  // x^2 - 1 is not 0 for absent entries
    filter.predict(rows.sparse(), sparse, variances);
    EXPECT_LT((as_vector(predictions) - as_vector(sparse)).norm(), 1e-10);
  }
}

// The variance of a prediction is sum P g^2. The gradient g is computed by finite differences of the archived
// parameters.
TEST(KalmanFilter, PredictionVarianceEqualsPropagatedParameterVariances) {
  for (const Shape& shape : shapes) {
    const KalmanOptions options = filter_options(shape);
    auto filter = make_filter<double>(options);
    const auto rows = random_rows<double>(25, 7, 1);
    learn(filter, rows.dense());
    const auto state = state_of(filter);
    const Rows<double> row = rows.dense().slice(3, 1);
    const auto predict = [&](const std::map<std::string, std::vector<double>>& parameters, double& variance) {
      KalmanFilter<double> other(options, {}, 1);
      Archive archive(parameters);
      other.archive(archive);
      double prediction = 0;
      other.predict(row, {&prediction, 1}, {&variance, 1});
      return prediction;
    };
    double variance = 0;
    double unused = 0;
    const double prediction = predict(state, variance);
    double expected = state.at("intercept_variance")[0];
    const std::vector<double>& records = state.at("features");
    // Record of a feature: factors, their variances, weight, its variance, square, its variance.
    const std::size_t width = 3;  // number of factors
    const std::size_t stride = records.size() / 7;
    for (std::size_t j = 0; j < 7; ++j) {
      std::vector<std::pair<std::size_t, std::size_t>> mean_and_variance;
      for (std::size_t c = 0; c < 3; ++c) mean_and_variance.emplace_back(c, width + c);
      mean_and_variance.emplace_back(2 * width, 2 * width + 1);
      mean_and_variance.emplace_back(2 * width + 2, 2 * width + 3);
      for (const auto& [mean, variance_offset] : mean_and_variance) {
        auto perturbed = state;
        constexpr double step = 1e-6;
        perturbed.at("features")[j * stride + mean] += step;
        const double gradient = (predict(perturbed, unused) - prediction) / step;
        expected += records[j * stride + variance_offset] * gradient * gradient;
      }
    }
    EXPECT_NEAR(variance, expected, 1e-4 * expected);
  }
}

// Bayes' rule for one Gaussian parameter: 1/P+ = 1/P + x^2/s2 and theta+ = P+ (theta/P + x y/s2).
TEST(KalmanFilter, UpdateOfOneWeightEqualsLinearRegression) {
  KalmanOptions options = filter_options({}, 1, 1);
  options.shape.intercept = false;
  auto filter = make_filter<double>(options, {1, 2.0, 1, 0}, 0.5);
  const OwnedRows<double> row(RowMajorMatrix<double>::Constant(1, 1, 3), {4});
  learn(filter, row.dense());
  const auto state = state_of(filter);
  const std::size_t weight_offset = 2;  // after the factor and its variance
  const double precision = 1 / 2.0 + 9 / 0.5;
  EXPECT_NEAR(state.at("features")[weight_offset + 1], 1 / precision, 1e-12);
  EXPECT_NEAR(state.at("features")[weight_offset], 3 * 4 / 0.5 / precision, 1e-12);
}

TEST(KalmanFilter, ResultDoesNotDependOnChunksOrLayout) {
  for (const Shape& shape : shapes) {
    KalmanOptions options = filter_options(shape);
    options.square_center = 0;
    const auto rows = random_rows<double>(60, 7, 3, 0.5);
    auto whole = make_filter<double>(options);
    auto chunked = make_filter<double>(options);
    auto sparse = make_filter<double>(options);
    const auto predictions = learn(whole, rows.dense());
    for (Index first = 0; first < 60; first += 7)
      learn(chunked, rows.dense().slice(first, std::min<Index>(7, 60 - first)));
    EXPECT_EQ(state_of(whole), state_of(chunked));
    const auto from_sparse = learn(sparse, rows.sparse());
    for (std::size_t i = 0; i < 60; ++i) EXPECT_NEAR(predictions[i], from_sparse[i], 1e-9);
  }
}

TEST(KalmanFilter, ResultDoesNotDependOnFeatureScales) {
  for (const Shape& shape : shapes) {
    KalmanOptions options = filter_options(shape);
    options.square_center = 0;
    const std::vector<double> scales{1e6, 1e-6, 1, 30, 1e-3, 7, 1e4};
    const auto rows = random_rows<double>(80, 7, 4);
    RowMajorMatrix<double> X = rows.X;
    KalmanFilter<double> scaled(options, {}, 0.5);
    for (Index j = 0; j < 7; ++j) {
      X.col(j) *= scales[static_cast<std::size_t>(j)];
      scaled.add_feature(j, scales[static_cast<std::size_t>(j)]);
    }
    auto plain = make_filter<double>(options);
    const auto expected = learn(plain, rows.dense());
    const auto actual = learn(scaled, OwnedRows<double>(X, rows.targets).dense());
    for (std::size_t i = 0; i < 80; ++i) EXPECT_NEAR(actual[i], expected[i], 1e-6);
  }
}

TEST(KalmanFilter, RowWeightScalesTheUpdate) {
  const auto rows = random_rows<double>(5, 7, 1);
  auto filter = make_filter<double>(filter_options({}));
  const auto before = state_of(filter);
  const std::vector<double> zeros(5, 0);
  learn(filter, rows.dense().weighted(zeros));
  auto after = state_of(filter);
  after.at("rows") = before.at("rows");
  EXPECT_EQ(before, after);

  const std::vector<double> heavy{1e9, 1, 1, 1, 1};
  learn(filter, rows.dense().weighted(heavy).slice(0, 1));
  double prediction = 0;
  double variance = 0;
  filter.predict(rows.dense().slice(0, 1), {&prediction, 1}, {&variance, 1});
  auto light = make_filter<double>(filter_options({}));
  learn(light, rows.dense().slice(0, 1));
  double other = 0;
  light.predict(rows.dense().slice(0, 1), {&other, 1}, {&variance, 1});
  EXPECT_LT(std::abs(rows.targets[0] - prediction), std::abs(rows.targets[0] - other));
}

TEST(KalmanFilter, CensoredTargetsDoNotUpdatePredictionsBeyondTheBound) {
  KalmanOptions options = filter_options({});
  auto filter = make_filter<double>(options);
  OwnedRows<double> row(RowMajorMatrix<double>::Constant(1, 7, 0.5), {3});
  filter.set_likelihood(make_likelihood(Task::regression, {-5, 5}));
  for (int i = 0; i < 50; ++i) learn(filter, row.dense());
  filter.set_likelihood(make_likelihood(Task::regression, {-5, 1}));
  const auto before = state_of(filter);
  row.targets = {1};
  learn(filter, row.dense());
  auto after = state_of(filter);
  after.at("rows") = before.at("rows");
  EXPECT_EQ(before, after) << "a censored target of 1 is consistent with the prediction 3";
  row.targets = {0.9};
  learn(filter, row.dense());
  EXPECT_NE(before.at("features"), state_of(filter).at("features"));
}

TEST(KalmanFilter, RecoversPlantedModelAndNoise) {
  for (const Shape& shape : shapes) {
    const Index dim = 12;
    Model<double> truth = random_model<double>(dim, 2, 1, shape.left_dim);
    truth.intercept = 0.5;
    if (shape.diagonal != Diagonal::tied)
      for (Index j = 0; j < dim; ++j)
        truth.squares.push_back(-truth.interaction(j, j) + (shape.diagonal == Diagonal::free ? 0.4 : 0));
    auto rows = random_rows<double>(30000, dim, 2);
    const Vector<double> f = test::brute_force_predictions(truth, rows.X);
    Random random(3, 0);
    for (Index i = 0; i < f.size(); ++i) rows.targets[static_cast<std::size_t>(i)] = f[i] + 0.3 * random.normal();
    KalmanOptions options = filter_options(shape, dim, 2);
    Model<double> start = truth;
    for (double& weight : start.weights) weight += 0.3;
    for (double& lambda : start.spectrum) lambda *= 1.5;
    KalmanFilter<double> filter(options, {}, start, std::vector<double>(12, 1), 2);
    learn(filter, rows.dense());
    EXPECT_NEAR(std::sqrt(filter.noise_variance()), 0.3, 0.015);
    const Vector<double> error = test::brute_force_predictions(filter.model(), rows.X) - f;
    EXPECT_LT(std::sqrt(error.squaredNorm() / 30000), 0.03);
  }
}

TEST(KalmanFilter, ClassificationLossIsCloseToThatOfTheTruth) {
  const Model<double> truth = random_model<double>(6, 2, 1);
  auto rows = random_rows<double>(20000, 6, 2);
  const Vector<double> f = test::brute_force_predictions(truth, rows.X);
  Random random(3, 0);
  for (Index i = 0; i < f.size(); ++i)
    rows.targets[static_cast<std::size_t>(i)] = random.uniform() < 1 / (1 + std::exp(-f[i])) ? 1 : -1;
  KalmanOptions options = filter_options({}, 6, 2);
  options.likelihood = make_likelihood(Task::classification);
  auto filter = make_filter<double>(options, {1, 0.5, 1, 0.1}, 1);
  const auto predictions = learn(filter, rows.dense());
  double filter_loss = 0;
  double true_loss = 0;
  for (std::size_t i = 10000; i < 20000; ++i) {
    const auto loss = [&](double log_odds) { return std::log1p(std::exp(rows.targets[i] > 0 ? -log_odds : log_odds)); };
    filter_loss += loss(predictions[i]) / 10000;
    true_loss += loss(f[static_cast<Index>(i)]) / 10000;
  }
  EXPECT_LT(filter_loss, 1.05 * true_loss);
}

TEST(KalmanFilter, ForgettingTracksDriftAndLimitsVariancesToThePrior) {
  KalmanOptions options = filter_options({}, 4, 1);
  auto constant = make_filter<double>(options, {1, 1, 1, 1e-6});
  options.half_life = 60;
  auto forgetting = make_filter<double>(options, {1, 1, 1, 1e-6});
  auto rows = random_rows<double>(8000, 4, 5);
  Random random(6, 0);
  for (Index i = 0; i < 8000; ++i)
    rows.targets[static_cast<std::size_t>(i)] =
        std::cos(static_cast<double>(i) / 1500) * rows.X(i, 0) + 0.1 * random.normal();
  const auto constant_predictions = learn(constant, rows.dense());
  const auto forgetting_predictions = learn(forgetting, rows.dense());
  double squares[2] = {0, 0};
  for (std::size_t i = 7000; i < 8000; ++i) {
    squares[0] += std::pow(rows.targets[i] - constant_predictions[i], 2) / 1000;
    squares[1] += std::pow(rows.targets[i] - forgetting_predictions[i], 2) / 1000;
  }
  EXPECT_LT(std::sqrt(squares[1]), 0.2);
  EXPECT_LT(squares[1], 0.5 * squares[0]);
  const auto state = state_of(forgetting);
  const std::vector<double>& records = state.at("features");
  for (std::size_t j = 0; j < 4; ++j) EXPECT_LE(records[j * records.size() / 4 + 3], 1);
}

TEST(KalmanFilter, GrowKeepsPredictions) {
  for (const Shape& shape : shapes) {
    KalmanOptions options = filter_options(shape);
    options.square_center = 0;
    options.half_life = 1000;
    auto filter = make_filter<double>(options);
    const auto rows = random_rows<double>(20, 7, 1);
    learn(filter, rows.dense());
    std::vector<double> before(20);
    std::vector<double> variances(20);
    filter.predict(rows.dense(), before, variances);
    const Index left = shape.left_dim > 0 ? shape.left_dim + 2 : 0;
    filter.grow(12, left);
    RowMajorMatrix<double> wide = RowMajorMatrix<double>::Zero(20, 12);
    const Index left_before = shape.left_dim > 0 ? shape.left_dim : 7;
    wide.leftCols(left_before) = rows.X.leftCols(left_before);
    wide.middleCols(left > 0 ? left : left_before, 7 - left_before) = rows.X.rightCols(7 - left_before);
    std::vector<double> after(20);
    filter.predict(OwnedRows<double>(wide, rows.targets).dense(), after, variances);
    for (std::size_t i = 0; i < 20; ++i) EXPECT_NEAR(after[i], before[i], 1e-12);
  }
}

TEST(KalmanFilter, ArchivedFilterContinuesBitIdentically) {
  for (const Shape& shape : shapes) {
    KalmanOptions options = filter_options(shape);
    options.half_life = 50;
    const auto rows = random_rows<double>(40, 7, 1);
    auto filter = make_filter<double>(options);
    learn(filter, rows.dense().slice(0, 20));
    KalmanFilter<double> other(options, {}, 1);
    Archive archive(state_of(filter));
    other.archive(archive);
    learn(filter, rows.dense().slice(20, 20));
    learn(other, rows.dense().slice(20, 20));
    EXPECT_EQ(state_of(filter), state_of(other));
  }
}

TEST(KalmanFilter, SignFlipChangesWeakFactorsOnly) {
  Model<double> model = random_model<double>(7, 3, 1);
  model.spectrum = {2, -1.5, 1e-9};
  const std::vector<double> ones(7, 1);
  const KalmanFilter<double> filter(filter_options({}), {}, model, ones, 1);
  auto flipped = filter.with_weak_factors_sign_flipped();
  ASSERT_TRUE(flipped.has_value());
  EXPECT_EQ(state_of(*flipped).at("signs"), (std::vector<double>{1, -1, -1, 0}));
  model.spectrum = {2, -1.5, 1};
  EXPECT_FALSE(
      KalmanFilter<double>(filter_options({}), {}, model, ones, 1).with_weak_factors_sign_flipped().has_value());
}

TEST(KalmanFilter, RecoversAfterChangeOfDistribution) {
  auto filter = make_filter<double>(filter_options({}, 4, 1));
  auto rows = random_rows<double>(6000, 4, 1);
  for (Index i = 0; i < 6000; ++i) rows.targets[static_cast<std::size_t>(i)] = i < 3000 ? 0 : 5 + rows.X(i, 1);
  const auto predictions = learn(filter, rows.dense());
  double squares = 0;
  for (std::size_t i = 5000; i < 6000; ++i) squares += std::pow(rows.targets[i] - predictions[i], 2) / 1000;
  EXPECT_LT(squares, 0.01);
}

TEST(KalmanFilter, StaysFiniteInSinglePrecisionWithOutliers) {
  for (const Shape& shape : shapes) {
    auto filter = make_filter<float>(filter_options(shape));
    Random random(1, 0);
    RowMajorMatrix<float> X = random_normal<float>(random, 3000, 7);
    std::vector<float> y(3000);
    for (Index i = 0; i < 3000; ++i) {
      if (i % 50 == 0) X.row(i) *= 1000;
      if (i % 70 == 0) X.row(i).setZero();
      if (i % 3 == 0) X.row(i) = X.row(0);
      y[static_cast<std::size_t>(i)] = static_cast<float>(random.normal()) * (i % 90 == 0 ? 1e6F : 1);
    }
    const OwnedRows<float> rows(X, y);
    for (const float prediction : learn(filter, rows.dense())) EXPECT_TRUE(std::isfinite(prediction));
    EXPECT_TRUE(filter.model().is_finite());
    EXPECT_TRUE(std::isfinite(filter.noise_variance()));
  }
}

// With a noise variance of 1e-14, one row reduces a variance to the rounding error of its previous value.
TEST(KalmanFilter, VariancesStayPositiveInSinglePrecision) {
  for (int seed = 1; seed <= 50; ++seed) {
    KalmanOptions options;
    options.shape.dim = 3;
    options.shape.rank = 2;
    options.shape.diagonal = Diagonal::free;
    Prior prior;
    prior.weights = prior.squares = prior.factors = 0.1 * seed;
    KalmanFilter<float> filter(options, prior, 1e-14);
    for (Index j = 0; j < 3; ++j) filter.add_feature(j, 1);
    const auto rows = random_rows<float>(40, 3, static_cast<std::uint64_t>(seed), 0.4);
    std::vector<float> predictions(40);
    filter.learn(rows.sparse(), predictions);
    for (Index j = 0; j < 3; ++j) {
      const FeaturePosterior<float> feature = filter.feature_posterior(j);
      EXPECT_GT(feature.weight_variance, 0);
      EXPECT_GT(feature.square_variance, 0);
      for (Index c = 0; c < 2; ++c) EXPECT_GT(feature.factor_variances[c], 0);
    }
  }
}

}  // namespace
}  // namespace dyad
