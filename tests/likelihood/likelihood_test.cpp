#include "likelihood/likelihood.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace dyad {
namespace {

struct Case {
  LikelihoodPointer likelihood;
  std::vector<double> targets;
};

std::vector<Case> all_cases() {
  return {{make_likelihood(Task::regression), {-1.3, 0, 2.1}},
          {make_likelihood(Task::regression, {-1, 1}), {-1, 0.3, 1}},
          {make_likelihood(Task::classification), {-1, 1}}};
}

const std::vector<double> predictors{-3.7, -0.9, -0.2, 0.4, 1.8, 5.2};

TEST(Likelihood, GradientAndCurvatureEqualFiniteDifferences) {
  constexpr double h = 1e-4;
  for (const Case& c : all_cases())
    for (const double y : c.targets)
      for (const double f : predictors) {
        const auto at = c.likelihood->expand(y, f);
        const double before = c.likelihood->loss(y, f - h);
        const double after = c.likelihood->loss(y, f + h);
        EXPECT_DOUBLE_EQ(at.loss, c.likelihood->loss(y, f));
        EXPECT_NEAR(at.gradient, (before - after) / (2 * h), 1e-6);
        EXPECT_NEAR(at.curvature, (before - 2 * at.loss + after) / (h * h), 1e-6);
      }
}

TEST(Likelihood, LinkInvertsMeanAndDerivativeEqualsFiniteDifference) {
  constexpr double h = 1e-5;
  for (const Case& c : all_cases())
    for (const double f : predictors) {
      const double mean = c.likelihood->mean(f);
      EXPECT_NEAR(c.likelihood->link(mean), f, 1e-10);
      EXPECT_NEAR(c.likelihood->mean_derivative(mean),
                  (c.likelihood->mean(f + h) - c.likelihood->mean(f - h)) / (2 * h), 1e-8);
    }
}

/// The expected log-likelihood over f ~ N(mean, variance) is at least the bound, with equality for variance 0.
TEST(Likelihood, BoundIsBelowExpectedLogLikelihood) {
  const auto log_likelihood = [](const Case& c, double y, double f, double noise_precision) {
    const double constant = c.likelihood->has_noise_variance() ? std::log(noise_precision / (2 * M_PI)) / 2 : 0;
    return constant - (c.likelihood->has_noise_variance() ? noise_precision : 1) * c.likelihood->loss(y, f);
  };
  for (const Case& c : {all_cases()[0], all_cases()[2]})
    for (const double y : c.targets)
      for (const double mean : predictors)
        for (const double variance : {0.0, 0.3, 2.0}) {
          const double noise_precision = c.likelihood->has_noise_variance() ? 1.7 : 1;
          double expected = 0;
          double total = 0;
          for (int i = -4000; i <= 4000; ++i) {
            const double z = i / 500.0;
            const double density = std::exp(-z * z / 2);
            total += density;
            expected += density * log_likelihood(c, y, mean + std::sqrt(variance) * z, noise_precision);
          }
          const auto bound = c.likelihood->bound(y, mean, variance);
          const double value = c.likelihood->bound_value(y, bound.point, mean, variance, noise_precision);
          EXPECT_LE(value, expected / total + 1e-9);
          if (variance == 0) {
            EXPECT_NEAR(value, expected / total, 1e-9);
          }
        }
}

/// The derivative of bound_value() by the mean is precision (target - mean).
TEST(Likelihood, QuadraticBoundHasGradientOfItsValue) {
  constexpr double h = 1e-5;
  for (const Case& c : all_cases())
    for (const double y : c.targets)
      for (const double mean : predictors) {
        const auto bound = c.likelihood->bound(y, mean, 0.5);
        const auto value = [&](double at) { return c.likelihood->bound_value(y, bound.point, at, 0.5, 1); };
        EXPECT_NEAR(bound.precision * (bound.target - mean), (value(mean + h) - value(mean - h)) / (2 * h), 1e-7);
      }
}

TEST(Likelihood, ConstantScoresEqualBruteForce) {
  const std::vector<double> numbers{1.5, -0.5, 2, 2, 0};
  const std::vector<double> classes{1, -1, -1, 1, -1};
  for (const Task task : {Task::regression, Task::classification}) {
    const Likelihood& likelihood = likelihood_of(task);
    double sum = 0;
    double squares = 0;
    const std::vector<double>& targets = task == Task::regression ? numbers : classes;
    for (const double y : targets) {
      sum += likelihood.observed(y) / 5;
      squares += likelihood.observed(y) * likelihood.observed(y) / 5;
    }
    double score = 0;
    double loss = 0;
    for (const double y : targets) {
      score += likelihood.score(likelihood.observed(y), sum) / 5;
      loss += likelihood.loss(y, likelihood.link(sum)) / 5;
    }
    EXPECT_NEAR(likelihood.constant_score(sum, squares - sum * sum), score, 1e-12);
    EXPECT_NEAR(likelihood.constant_loss(sum, squares - sum * sum), loss, 1e-12);
  }
}

TEST(Likelihood, ConstantMeanOfOneClassHasFiniteLink) {
  const Likelihood& classes = likelihood_of(Task::classification);
  for (const double positive : {0.0, 7.0}) EXPECT_TRUE(std::isfinite(classes.link(classes.constant_mean(positive, 7))));
  EXPECT_EQ(likelihood_of(Task::regression).constant_mean(0, 0), 0);
}

TEST(Likelihood, CensoredTargetsCarryNoInformationBeyondSupport) {
  const auto censored = make_likelihood(Task::regression, {-1, 1});
  for (const auto& [y, f] : {std::pair{1.0, 1.5}, {-1.0, -2.0}}) {
    const auto at = censored->expand(y, f);
    EXPECT_EQ(at.loss, 0);
    EXPECT_EQ(at.gradient, 0);
    EXPECT_EQ(at.curvature, 0);
  }
  EXPECT_GT(censored->loss(1, 0.5), 0);
  EXPECT_GT(censored->loss(0.5, 1.5), 0);
}

constexpr double log_odds[] = {-1e6, -40, -3, -0.1, 0, 2, 50};

/// The derivative of weight * log-likelihood - (f - mean)^2 / (2 variance) is 0 at the new mean.
TEST(Likelihood, BernoulliUpdateOfLargeWeightMovesToPosteriorMode) {
  const Likelihood& classes = likelihood_of(Task::classification);
  for (const double mean : log_odds)
    for (const double variance : {1e-4, 0.1, 1.0, 100.0})
      for (const double weight : {1e5, 1e6, 1e30})
        for (const double y : {-1.0, 1.0}) {
          const auto update = classes.update(y, mean, variance, weight, 1);
          const double f = mean + variance * update.gain;
          EXPECT_LE(y * f, std::max(y * mean, 0.0) + std::log1p(weight * variance));
          const auto at = classes.expand(y, f);
          constexpr double rounding = 1e-14;  // relative error of f
          EXPECT_NEAR(variance * weight * at.gradient, f - mean,
                      rounding * (1 + std::abs(mean) + std::abs(f)) * (1 + variance * weight * at.curvature))
              << mean << " " << variance << " " << weight << " " << y;
          EXPECT_GE(update.innovation_precision, 0);
          EXPECT_LE(variance * update.innovation_precision, 1);
        }
}

/// For a linear model with Gaussian noise one update is exact: the posterior of f has precision 1/variance + omega/s2.
TEST(Likelihood, GaussianUpdateEqualsExactPosterior) {
  const Likelihood& gaussian = likelihood_of(Task::regression);
  for (const double weight : {0.5, 1.0, 1e6})
    for (const double variance : {0.1, 3.0}) {
      const double noise = 0.7;
      const auto update = gaussian.update(2, 0.5, variance, weight, noise);
      const double precision = 1 / variance + weight / noise;
      EXPECT_NEAR(variance - variance * variance * update.innovation_precision, 1 / precision, 1e-12);
      EXPECT_NEAR(0.5 + variance * update.gain, (0.5 / variance + 2 * weight / noise) / precision, 1e-12);
    }
}

/// Mean of g(f) over the normal distribution N(mean, variance).
template <typename Function>
double normal_mean(double mean, double variance, Function&& g) {
  double sum = 0;
  double total = 0;
  for (int i = -4000; i <= 4000; ++i) {
    const double z = i / 500.0;
    sum += std::exp(-z * z / 2) * g(mean + std::sqrt(variance) * z);
    total += std::exp(-z * z / 2);
  }
  return sum / total;
}

/// The errors of the approximations of MacKay (1992) are below 0.02 in the probability, and below 0.2 standard
/// deviations in the posterior mean of f.
TEST(Likelihood, BernoulliUpdateMatchesMomentsOfThePosterior) {
  const Likelihood& classes = likelihood_of(Task::classification);
  for (const double mean : {-3.0, -0.5, 0.0, 1.0, 4.0})
    for (const double variance : {0.01, 0.5, 2.0, 8.0}) {
      const auto probability = [&](double f) { return classes.mean(f); };
      const double exact = normal_mean(mean, variance, probability);
      EXPECT_NEAR(classes.mean(classes.posterior_predictor(mean, variance)), exact, 0.02);
      const double posterior_mean = normal_mean(mean, variance, [&](double f) { return f * classes.mean(f); }) / exact;
      const auto update = classes.update(1, mean, variance, 1, 1);
      EXPECT_NEAR(mean + variance * update.gain, posterior_mean, 0.2 * std::sqrt(variance));
      EXPECT_GT(update.innovation_precision, 0);
      EXPECT_LT(variance * update.innovation_precision, 1);
    }
}

/// Without variance, a row of weight n acts as n rows.
TEST(Likelihood, BernoulliUpdateOfSmallVarianceIsProportionalToTheWeight) {
  const Likelihood& classes = likelihood_of(Task::classification);
  const auto once = classes.update(1, 0.3, 1e-9, 1, 1);
  const auto often = classes.update(1, 0.3, 1e-9, 5, 1);
  EXPECT_NEAR(often.gain, 5 * once.gain, 1e-6);
  EXPECT_NEAR(often.innovation_precision, 5 * once.innovation_precision, 1e-6);
}

TEST(Likelihood, BernoulliUpdatesAreSymmetricInClasses) {
  const Likelihood& classes = likelihood_of(Task::classification);
  for (const double mean : log_odds)
    for (const double weight : {1.0, 10.0, 1e6}) {
      const auto positive = classes.update(1, mean, 2, weight, 1);
      const auto negative = classes.update(-1, -mean, 2, weight, 1);
      EXPECT_NEAR(positive.gain, -negative.gain, 1e-12 * (1 + std::abs(positive.gain)));
      EXPECT_NEAR(positive.innovation_precision, negative.innovation_precision, 1e-12);
    }
}

}  // namespace
}  // namespace dyad
