#include "solvers/sampling/gibbs_sampler.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "solvers/sampling/sampled_rows.h"

namespace dyad {
namespace {

using test::OwnedSampler;
using test::sampler_options;

/// Mean over a chain, with its standard error from the means of 50 batches.
struct ChainMean {
  double mean = 0;
  double error = 0;

  explicit ChainMean(const std::vector<double>& values) {
    constexpr std::size_t batches = 50;
    const std::size_t size = values.size() / batches;
    std::vector<double> means;
    for (std::size_t batch = 0; batch < batches; ++batch) {
      double sum = 0;
      for (std::size_t i = batch * size; i < (batch + 1) * size; ++i) sum += values[i];
      mean += means.emplace_back(sum / static_cast<double>(size)) / batches;
    }
    for (const double value : means) error += std::pow(value - mean, 2);
    error = std::sqrt(error / (batches * (batches - 1)));
  }
};

void expect_equal_parameters(const GibbsSampler& a, const GibbsSampler& b) {
  EXPECT_EQ(a.sample().intercept, b.sample().intercept);
  EXPECT_EQ(a.sample().noise_precision, b.sample().noise_precision);
  for (Index j = 0; j < a.columns().dim(); ++j) {
    EXPECT_EQ(a.sample().noise.multiplier(j), b.sample().noise.multiplier(j));
    for (Index place = 0; place < a.sample().parameters.places(); ++place)
      EXPECT_EQ(a.sample().parameters.at(j, place), b.sample().parameters.at(j, place));
  }
}

class GibbsSamplerOf : public testing::TestWithParam<std::tuple<bool, Diagonal, Index>> {};

TEST_P(GibbsSamplerOf, IsInvariantToThreads) {
  const auto [is_classification, diagonal, left_dim] = GetParam();
  const auto rows = test::grouped_rows(9000, 150, 3, left_dim == 0 && diagonal == Diagonal::zero, 1);
  const SamplerOptions options = sampler_options(150, 3, diagonal, is_classification, left_dim);
  ThreadPool one(1);
  ThreadPool three(3);
  OwnedSampler a(rows.sparse(), test::groups_of(150, 3), options, one);
  OwnedSampler b(rows.sparse(), test::groups_of(150, 3), options, three);
  for (int sweep = 0; sweep < 13; ++sweep) {
    a.sampler.sweep();
    b.sampler.sweep();
  }
  expect_equal_parameters(a.sampler, b.sampler);
}

TEST_P(GibbsSamplerOf, IsInvariantToTheOrderWithinAColourClass) {
  const auto [is_classification, diagonal, left_dim] = GetParam();
  const auto rows = test::grouped_rows(500, 60, 3, true, 2);
  const SamplerOptions options = sampler_options(60, 3, diagonal, is_classification, left_dim);
  OwnedSampler a(rows.sparse(), test::groups_of(60, 3), options, test::pool());
  std::vector<std::int32_t> order;
  for (std::int32_t group = 0; group < 3; ++group)
    for (std::int32_t level = 20; level-- > 0;) order.push_back(20 * group + level);
  const ColourClasses reversed(a.columns, order);
  ASSERT_EQ(reversed.classes().size(), a.colours.classes().size());
  GibbsSampler b(a.columns, a.groups, reversed, options, test::pool());
  for (int sweep = 0; sweep < 13; ++sweep) {
    a.sampler.sweep();
    b.sweep();
  }
  expect_equal_parameters(a.sampler, b);
}

TEST_P(GibbsSamplerOf, TracksThePredictorsOfTheRows) {
  const auto [is_classification, diagonal, left_dim] = GetParam();
  const auto rows = test::random_rows<double>(200, 12, 3, 0.4);
  const SamplerOptions options = sampler_options(12, 3, diagonal, is_classification, left_dim);
  OwnedSampler owned(rows.sparse(), PriorGroups(), options, test::pool());
  std::vector<float> weights(200, 1.0F);
  for (std::size_t i = 0; i < 40; ++i) weights[i] = 0;
  owned.sampler.set_weights(weights);
  for (int sweep = 0; sweep < 25; ++sweep) owned.sampler.sweep();
  for (Index i = 0; i < 200; ++i) {
    const Index source = owned.columns.source_rows()[static_cast<std::size_t>(i)];
    const double f = test::brute_force_predictor(owned.sampler.sample(), options, rows.X.row(source));
    EXPECT_NEAR(owned.sampler.predictor(i), f, 1e-3 * (1 + std::abs(f)));
  }
}

/// A row of weight 2 has the same conditional distributions as two equal rows.
TEST(GibbsSampler, TreatsWeightsAsRepetitions) {
  const auto rows = test::grouped_rows(120, 12, 2, true, 4);
  RowMajorMatrix<double> X(240, 12);
  std::vector<double> y;
  for (Index i = 0; i < 120; ++i)
    for (Index copy = 0; copy < 2; ++copy) {
      X.row(2 * i + copy) = rows.X.row(i);
      y.push_back(rows.targets[static_cast<std::size_t>(i)]);
    }
  const test::OwnedRows<double> repeated(X, y);
  const SamplerOptions options = sampler_options(12, 2, Diagonal::zero, false);
  const std::vector<double> weights(120, 2.0);
  OwnedSampler a(rows.sparse().weighted(weights), test::groups_of(12, 2), options, test::pool());
  OwnedSampler b(repeated.sparse(), test::groups_of(12, 2), options, test::pool());
  for (int sweep = 0; sweep < 5; ++sweep) {
    a.sampler.sweep();
    b.sampler.sweep();
  }
  for (Index j = 0; j < 12; ++j)
    for (Index place = 0; place < 3; ++place)
      EXPECT_NEAR(a.sampler.sample().parameters.at(j, place), b.sampler.sample().parameters.at(j, place), 1e-3);
}

TEST(GibbsSampler, IgnoresRowsOfWeightZero) {
  const auto rows = test::grouped_rows(200, 20, 2, true, 5);
  const SamplerOptions options = sampler_options(20, 2, Diagonal::zero, false);
  std::vector<double> weights(200, 1.0);
  for (std::size_t i = 150; i < 200; ++i) weights[i] = 0;
  const Rows<double> weighted = rows.sparse().weighted(weights);
  auto other = rows;
  for (std::size_t i = 150; i < 200; ++i) other.targets[i] = 1e3;
  OwnedSampler a(weighted, test::groups_of(20, 2), options, test::pool());
  OwnedSampler b(other.sparse().weighted(weights), test::groups_of(20, 2), options, test::pool());
  for (int sweep = 0; sweep < 15; ++sweep) {
    a.sampler.sweep();
    b.sampler.sweep();
  }
  expect_equal_parameters(a.sampler, b.sampler);
}

/// Rows without features: b ~ N(0, 100) with logistic likelihood. The exact posterior is computed by quadrature.
TEST(GibbsSampler, HasTheExactPosteriorOfTheInterceptOfClasses) {
  const RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(6, 1);
  const test::OwnedRows<double> rows(X, {1, 1, 1, 1, -1, -1});
  const std::vector<double> weights{1, 1, 0.5, 2, 1, 1};
  OwnedSampler owned(rows.sparse().weighted(weights), PriorGroups(), sampler_options(1, 1, Diagonal::zero, true),
                     test::pool());
  std::vector<double> values;
  std::vector<double> squares;
  for (int sweep = 0; sweep < 40000; ++sweep) {
    owned.sampler.sweep();
    values.push_back(owned.sampler.sample().intercept);
    squares.push_back(values.back() * values.back());
  }
  double mass = 0;
  double mean = 0;
  double square = 0;
  for (double b = -30; b < 30; b += 0.01) {
    const double density = std::exp(4.5 * log_logistic(b) + 2 * log_logistic(-b) - b * b / 200);
    mass += density;
    mean += density * b;
    square += density * b * b;
  }
  const ChainMean sampled(values);
  const ChainMean sampled_square(squares);
  EXPECT_NEAR(sampled.mean, mean / mass, 5 * sampled.error);
  EXPECT_NEAR(sampled_square.mean, square / mass, 5 * sampled_square.error);
}

/// Rows without features: b ~ N(0, 100), alpha ~ Gamma(1/2, 1/2), y ~ N(b, 1/alpha).
TEST(GibbsSampler, HasTheExactPosteriorOfInterceptAndNoise) {
  const RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(5, 1);
  const test::OwnedRows<double> rows(X, {0.5, 1.5, -0.2, 2.1, 0.9});
  OwnedSampler owned(rows.sparse(), PriorGroups(), sampler_options(1, 1, Diagonal::zero, false), test::pool());
  std::vector<double> intercepts;
  std::vector<double> log_precisions;
  for (int sweep = 0; sweep < 40000; ++sweep) {
    owned.sampler.sweep();
    intercepts.push_back(std::tanh(owned.sampler.sample().intercept));
    log_precisions.push_back(std::log(owned.sampler.sample().noise_precision));
  }
  double mass = 0;
  double intercept = 0;
  double log_precision = 0;
  for (double b = -15; b < 15; b += 0.02)
    for (double log_alpha = -10; log_alpha < 5; log_alpha += 0.02) {
      double squares = 1;
      for (const double y : rows.targets) squares += (y - b) * (y - b);
      // Densities of log alpha: exponents 5/2 from the rows and 1/2 from the prior.
      const double density = std::exp(3 * log_alpha - std::exp(log_alpha) * squares / 2 - b * b / 200);
      mass += density;
      intercept += density * std::tanh(b);
      log_precision += density * log_alpha;
    }
  const ChainMean sampled_intercept(intercepts);
  const ChainMean sampled_precision(log_precisions);
  EXPECT_NEAR(sampled_intercept.mean, intercept / mass, 5 * sampled_intercept.error);
  EXPECT_NEAR(sampled_precision.mean, log_precision / mass, 5 * sampled_precision.error);
}

TEST(GibbsSampler, FindsFeaturesWithLittleNoise) {
  auto rows = test::grouped_rows(4000, 20, 1, true, 6);
  Random random(7, 0);
  for (std::size_t i = 0; i < 4000; ++i) {
    const bool is_quiet = rows.columns[i] < 10;
    rows.targets[i] = (is_quiet ? 0.3 : 1.2) * random.normal();
  }
  OwnedSampler owned(rows.sparse(), PriorGroups(), sampler_options(20, 1, Diagonal::zero, false), test::pool());
  for (int sweep = 0; sweep < 40; ++sweep) owned.sampler.sweep();
  // The ratio of the precisions is 16. With 200 rows per feature, each has a standard error of 10%.
  for (Index j = 0; j < 10; ++j)
    EXPECT_NEAR(std::log(owned.sampler.sample().noise.multiplier(j) / owned.sampler.sample().noise.multiplier(j + 10)),
                std::log(16), 5 * 0.15);
}

INSTANTIATE_TEST_SUITE_P(Models, GibbsSamplerOf,
                         testing::Values(std::tuple(false, Diagonal::zero, 0), std::tuple(true, Diagonal::zero, 0),
                                         std::tuple(false, Diagonal::free, 0), std::tuple(false, Diagonal::tied, 5),
                                         std::tuple(true, Diagonal::tied, 5)));

}  // namespace
}  // namespace dyad
