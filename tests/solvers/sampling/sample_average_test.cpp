#include "solvers/sampling/sample_average.h"

#include <gtest/gtest.h>

#include "solvers/sampling/sampled_rows.h"
#include "solvers/sampling/unknown_probes.h"
#include "solvers/sampling/variance_model.h"

namespace dyad {
namespace {

class SampleAverageOf : public testing::TestWithParam<std::tuple<Diagonal, Index>> {};

/// The predictions of the average are the averages of the predictions, if its size suffices for all columns of a sample
/// and of the features.
TEST_P(SampleAverageOf, PredictsTheMeanOfTheSamples) {
  const auto [diagonal, left_dim] = GetParam();
  const Index dim = 12;
  const auto rows = test::random_rows<double>(150, dim, 1, 0.4);
  const SamplerOptions options = test::sampler_options(dim, 3, diagonal, false, left_dim);
  test::OwnedSampler owned(rows.sparse(), PriorGroups(), options, test::pool());
  SampleAverage average(owned.sampler, dim + 4);
  std::vector<double> sums(150);
  Vector<double> noise = Vector<double>::Zero(dim);
  const int samples = 40;  // the columns are cut several times
  for (int sample = 0; sample < samples; ++sample) {
    owned.sampler.sweep();
    average.add(owned.sampler);
    for (Index i = 0; i < 150; ++i)
      sums[static_cast<std::size_t>(i)] +=
          test::brute_force_predictor(owned.sampler.sample(), options, rows.X.row(i)) / samples;
    for (Index j = 0; j < dim; ++j) noise[j] -= std::log(owned.sampler.sample().noise.multiplier(j)) / samples;
  }
  SignedFactors<double> model = average.model(dim + 4);
  model.weights.conservativeResize(dim);
  model.A.conservativeResize(dim, model.A.cols());
  if (model.squares.size() > 0) model.squares.conservativeResize(dim);
  std::vector<double> predictions(150);
  model.predict(rows.sparse(), predictions);
  for (std::size_t i = 0; i < 150; ++i) EXPECT_NEAR(predictions[i], sums[i], 1e-3 * (1 + std::abs(sums[i])));
  for (Index j = 0; j < dim; ++j) EXPECT_NEAR(average.noise().log_factors[static_cast<std::size_t>(j)], noise[j], 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Models, SampleAverageOf,
                         testing::Values(std::tuple(Diagonal::zero, 0), std::tuple(Diagonal::free, 0),
                                         std::tuple(Diagonal::tied, 5)));

TEST(SampleAverage, ContainsTheMeanParametersOfEachGroup) {
  const auto rows = test::grouped_rows(300, 20, 2, true, 2);
  const SamplerOptions options = test::sampler_options(20, 2, Diagonal::zero, false);
  test::OwnedSampler owned(rows.sparse(), test::groups_of(20, 2), options, test::pool());
  SampleAverage average(owned.sampler);
  double weight = 0;
  double interaction = 0;
  const int samples = 25;
  for (int sample = 0; sample < samples; ++sample) {
    owned.sampler.sweep();
    average.add(owned.sampler);
    const GibbsSampler::Sample& drawn = owned.sampler.sample();
    weight += drawn.hyperpriors.means(1)[2] / samples;
    for (Index c = 0; c < 2; ++c)
      interaction += drawn.hyperpriors.means(1)[c] * static_cast<double>(drawn.parameters.at(3, c)) / samples;
  }
  const SignedFactors<double> model = average.model(50);
  ASSERT_EQ(model.weights.size(), 23);  // two groups, and that of features without rows
  EXPECT_NEAR(model.weights[21], weight, 1e-9);
  EXPECT_NEAR(2 * model.A.row(21).dot(model.A.row(3)), interaction, 1e-5);
}

/// All models of one average use the same coordinates, up to signs, and errors decrease with the rank.
TEST(SampleAverage, ErrorsDecreaseWithTheRank) {
  const auto rows = test::random_rows<double>(300, 30, 3, 0.3);
  const SamplerOptions options = test::sampler_options(30, 6, Diagonal::zero, false);
  test::OwnedSampler owned(rows.sparse(), PriorGroups(), options, test::pool());
  SampleAverage average(owned.sampler, 32);
  for (int sample = 0; sample < 30; ++sample) {
    owned.sampler.sweep();
    average.add(owned.sampler);
  }
  std::vector<double> exact(300);
  SignedFactors<double> model = average.model(32);
  const auto error = [&](Index rank) {
    SignedFactors<double> cut = average.model(rank);
    const Matrix<double> difference = cut.A * cut.A.transpose() - model.A * model.A.transpose();
    return difference.norm();
  };
  EXPECT_LT(error(20), error(8));
  EXPECT_LT(error(8), error(2));
  EXPECT_LT(error(32), 1e-4 * error(8));
}

TEST(VarianceModel, RecoversALogLinearVariance) {
  const auto rows = test::grouped_rows(3000, 20, 2, false, 4);
  const Rows<double> view = rows.sparse();
  const FeatureColumns columns(std::span<const Rows<double>>(&view, 1));
  Random random(5, 0);
  std::vector<double> truth;
  for (int j = 0; j < 20; ++j) truth.push_back(random.normal());
  std::vector<double> log_variances(3000, -1.0);
  for (Index j = 0; j < 20; ++j)
    for (Index e = 0; e < columns.column(j).count(); ++e)
      log_variances[static_cast<std::size_t>(columns.column(j).row(e))] +=
          truth[static_cast<std::size_t>(j)] * std::pow(static_cast<double>(columns.column(j).value(e)), 2);
  std::vector<double> variances;
  for (const double value : log_variances) variances.push_back(std::exp(value));
  const VarianceModel model = VarianceModel::fit(columns, variances, columns.weights());
  for (std::size_t j = 0; j < 20; ++j) EXPECT_NEAR(model.coefficients[j], truth[j], 0.05);  // the ridge shrinks by 1%
  EXPECT_NEAR(model.intercept, -1, 0.05);
}

/// With one group of weights only, the variance of an unknown feature is the prior variance 1/lambda.
TEST(UnknownProbes, HaveTheVarianceOfThePrior) {
  const auto rows = test::grouped_rows(500, 40, 1, true, 6);
  const SamplerOptions options = test::sampler_options(40, 1, Diagonal::zero, false);
  test::OwnedSampler owned(rows.sparse(), PriorGroups(), options, test::pool());
  UnknownProbes probes(rows.sparse(), owned.groups, options.shape, 1);
  double precision = 0;
  const int samples = 400;
  for (int sweep = 0; sweep < samples; ++sweep) {
    owned.sampler.sweep();
    // Constant hyperpriors, so that all samples have the same variance.
    owned.sampler.sample().hyperpriors.means(0)[1] = 0.1;
    precision = owned.sampler.sample().hyperpriors.precisions(0)[1] = 4;
    owned.sampler.sample().intercept = 0;
    probes.add(owned.sampler);
  }
  const VarianceModel model{.intercept = 0.5, .coefficients = std::vector<double>(40, 0.0)};
  // The mean of 64 log sample variances; the rows contain no other feature.
  EXPECT_NEAR(probes.coefficients(model)[0], std::log(1 / precision) - 0.5, 5 * std::sqrt(2.0 / samples / 64) + 0.01);
}

}  // namespace
}  // namespace dyad
