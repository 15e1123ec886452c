#include <gtest/gtest.h>

#include "solvers/kalman/filter.h"
#include "support.h"

namespace dyad {
namespace {

KalmanFilter<double> filter_to_merge(Diagonal diagonal) {
  KalmanOptions options;
  options.shape.dim = 7;
  options.shape.rank = 3;
  options.shape.diagonal = diagonal;
  options.entries = 7;
  KalmanFilter<double> filter(options, {}, 0.5);
  for (Index j = 0; j < options.shape.dim; ++j) filter.begin(j, 1);
  return filter;
}

void expect_same(const KalmanFilter<double>& a, const KalmanFilter<double>& b) {
  const NaturalParameters one = a.natural_parameters();
  const NaturalParameters other = b.natural_parameters();
  ASSERT_EQ(one.precisions.size(), static_cast<std::size_t>(a.natural_parameter_count()));
  for (std::size_t i = 0; i < one.precisions.size(); ++i) {
    EXPECT_NEAR(one.precisions[i], other.precisions[i], 1e-9 * one.precisions[i]);
    EXPECT_NEAR(one.moments[i], other.moments[i], 1e-9 * (1 + std::abs(one.moments[i])));
  }
}

TEST(KalmanMerge, WhatOnePartGainsIsThatPart) {
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    const auto rows = test::random_rows<double>(60, 7, 1);
    const KalmanFilter<double> start = filter_to_merge(diagonal);
    KalmanFilter<double> part = start;
    std::vector<double> predictions(60);
    part.learn(rows.dense(), predictions);
    NaturalParameters gained = part.natural_parameters();
    gained.add(-1, start.natural_parameters());
    NaturalParameters together = start.natural_parameters();
    together.add(1, gained);
    KalmanFilter<double> merged = start;
    merged.merge(together, 60, part.noise_variance());
    expect_same(merged, part);
    EXPECT_DOUBLE_EQ(merged.noise_variance(), part.noise_variance());
    EXPECT_DOUBLE_EQ(merged.rows(), part.rows());
  }
}

TEST(KalmanMerge, PrecisionsOfAFitAddOverParts) {
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    const auto rows = test::random_rows<double>(60, 7, 1);
    const KalmanFilter<double> fit = filter_to_merge(diagonal);
    KalmanFilter<double> whole = fit;
    whole.narrow(rows.dense());
    NaturalParameters together = fit.natural_parameters();
    for (const Index first : {0, 20, 40}) {
      KalmanFilter<double> part = fit;
      part.narrow(rows.dense().slice(first, 20));
      together.add(1, part.natural_parameters());
      together.add(-1, fit.natural_parameters());
    }
    KalmanFilter<double> merged = fit;
    merged.merge(together, 60, fit.noise_variance());
    expect_same(merged, whole);
  }
}

TEST(KalmanMerge, ImpossiblePrecisionsLeaveAParameterAsItIs) {
  KalmanFilter<double> filter = filter_to_merge(Diagonal::zero);
  const KalmanFilter<double> before = filter;
  NaturalParameters wrong = filter.natural_parameters();
  for (double& precision : wrong.precisions) precision = -precision;
  filter.merge(wrong, 1, 0.5);
  expect_same(filter, before);
}

}  // namespace
}  // namespace dyad
