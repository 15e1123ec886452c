#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "likelihood/logistic.h"
#include "solvers/sampling/random_draws.h"
#include "solvers/sampling/sampled_rows.h"

namespace dyad {
namespace {

/// Joint distribution test (Geweke 2004, "Getting it right"). Drawing parameters and targets from the prior, and
/// alternating sweeps with draws of the targets, give the same joint distribution if every conditional draw is exact.
class JointDistribution : public testing::TestWithParam<std::tuple<bool, Diagonal, Index>> {
 protected:
  static constexpr Index dim = 6;
  static constexpr Index rank = 2;

  using Statistics = std::vector<double>;

  [[nodiscard]] bool is_classification() const { return std::get<0>(GetParam()); }
  [[nodiscard]] Index left_dim() const { return std::get<2>(GetParam()); }

  void draw_prior(GibbsSampler& sampler, Random& random) const {
    GibbsSampler::Sample& sample = sampler.sample();
    sample.intercept = 10 * random.normal();
    sample.noise_precision = draw_gamma(random, 0.5) / 0.5;
    Hyperpriors& hyperpriors = sample.hyperpriors;
    for (Index group = 0; group < 2; ++group) {
      sample.noise.shape(group) = 1 + 100 * draw_exponential(random);
      for (Index place = 0; place < hyperpriors.places(); ++place) {
        const double deviation = hyperpriors.deviation(place);
        hyperpriors.precisions(group)[place] = draw_gamma(random, 0.5) / (0.5 * deviation * deviation);
        hyperpriors.means(group)[place] = random.normal() / std::sqrt(hyperpriors.precisions(group)[place]);
      }
    }
    for (Index j = 0; j < dim; ++j) {
      const Index group = sampler.groups().group_of[static_cast<std::size_t>(j)];
      const double half = sample.noise.shape(group) / 2;
      if (sampler.has_noise(j)) sample.noise.multiplier(j) = draw_gamma(random, half) / half;
      for (Index place = 0; place < rank + (sampler.has_square(j) ? 2 : 1); ++place)
        sample.parameters.at(j, place) = static_cast<float>(
            hyperpriors.means(group)[place] + random.normal() / std::sqrt(hyperpriors.precisions(group)[place]));
    }
    sampler.recompute_rows();
  }

  void draw_targets(GibbsSampler& sampler, Random& random) const {
    std::vector<float> targets;
    for (Index i = 0; i < sampler.columns().row_count(); ++i) {
      const double f = sampler.predictor(i);
      if (is_classification()) {
        targets.push_back(random.uniform() < logistic(f) ? 1.0F : -1.0F);
        continue;
      }
      double precision = sampler.sample().noise_precision;
      for (Index j = 0; j < dim; ++j)
        for (const std::int32_t row : sampler.columns().column(j).rows)
          if (row == i) precision *= sampler.sample().noise.multiplier(j);
      targets.push_back(static_cast<float>(f + random.normal() / std::sqrt(precision)));
    }
    sampler.set_targets(targets);
  }

  /// Bounded functions of all kinds of variables, because the prior has no moments.
  [[nodiscard]] Statistics statistics(const GibbsSampler& sampler) const {
    const GibbsSampler::Sample& sample = sampler.sample();
    Statistics result{std::tanh(sample.intercept / 10)};
    const auto bounded_log = [](double value) { return std::atan(std::log(value)); };
    if (!is_classification()) {
      result.push_back(bounded_log(sample.noise_precision));
      result.push_back(bounded_log(sample.noise.shape(0) / 70));
      if (sampler.has_noise(0)) result.push_back(bounded_log(sample.noise.multiplier(0)));
    }
    for (Index place = 0; place < rank + 1; ++place) {
      result.push_back(bounded_log(sample.hyperpriors.precisions(0)[place]));
      result.push_back(std::atan(sample.hyperpriors.means(0)[place]));
      result.push_back(std::atan(static_cast<double>(sample.parameters.at(0, place))));
      result.push_back(std::atan(std::abs(static_cast<double>(sample.parameters.at(3, place)))));
    }
    if (sampler.has_square(1)) result.push_back(std::atan(std::abs(static_cast<double>(sample.parameters.square(1)))));
    return result;
  }
};

TEST_P(JointDistribution, OfSuccessiveDrawsIsThatOfThePrior) {
  const auto [is_classification, diagonal, left_dim] = GetParam();
  const auto rows = test::grouped_rows(8, dim, 2, diagonal == Diagonal::zero, 11);
  SamplerOptions options = test::sampler_options(dim, rank, diagonal, is_classification, left_dim);
  ThreadPool pool(1);
  test::OwnedSampler owned(rows.sparse(), test::groups_of(dim, 2), options, pool);
  GibbsSampler& sampler = owned.sampler;
  for (Index j = 0; j < dim; ++j) ASSERT_TRUE(sampler.is_drawn(j));
  Random random(12, 0);
  constexpr int prior_draws = 20000;
  Statistics prior_sums;
  Statistics prior_squares;
  for (int draw = 0; draw < prior_draws; ++draw) {
    draw_prior(sampler, random);
    const Statistics values = statistics(sampler);
    prior_sums.resize(values.size());
    prior_squares.resize(values.size());
    for (std::size_t k = 0; k < values.size(); ++k) {
      prior_sums[k] += values[k] / prior_draws;
      prior_squares[k] += values[k] * values[k] / prior_draws;
    }
  }
  // The hyperpriors are constant in the first ten sweeps.
  for (int sweep = 0; sweep < 10; ++sweep) sampler.sweep();
  // Independent chains of dependent draws: each starts from the prior, so that its mean has the expectation of the
  // prior if the draws are exact.
  constexpr int chains = 2000;
  constexpr int sweeps_per_chain = 10;
  Statistics sums(prior_sums.size());
  Statistics squares(prior_sums.size());
  for (int chain = 0; chain < chains; ++chain) {
    draw_prior(sampler, random);
    for (int sweep = 0; sweep < sweeps_per_chain; ++sweep) {
      draw_targets(sampler, random);
      sampler.sweep();
    }
    const Statistics values = statistics(sampler);
    for (std::size_t k = 0; k < values.size(); ++k) {
      sums[k] += values[k] / chains;
      squares[k] += values[k] * values[k] / chains;
    }
  }
  for (std::size_t k = 0; k < sums.size(); ++k) {
    const double error = std::sqrt((squares[k] - sums[k] * sums[k]) / chains +
                                   (prior_squares[k] - prior_sums[k] * prior_sums[k]) / prior_draws);
    EXPECT_NEAR(sums[k], prior_sums[k], 5 * error) << "statistic " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, JointDistribution,
                         testing::Values(std::tuple(false, Diagonal::zero, 0), std::tuple(true, Diagonal::zero, 0),
                                         std::tuple(false, Diagonal::free, 0), std::tuple(false, Diagonal::tied, 3),
                                         std::tuple(true, Diagonal::tied, 3)));

}  // namespace
}  // namespace dyad
