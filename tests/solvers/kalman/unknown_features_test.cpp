#include "solvers/kalman/unknown_features.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace dyad {
namespace {

TEST(UnknownFeatures, SampleMomentsAreCloseToThoseOfAllFeatures) {
  KalmanOptions options;
  options.shape.dim = 20'000;
  options.shape.rank = 2;
  options.shape.diagonal = Diagonal::zero;
  for (const Index period : {1, 2, 16, 20}) {
    // Every period-th feature has a non-zero weight. Each feature occurs in one row.
    KalmanFilter<double> filter(options, Prior(), 0.01);
    Random random(1, 0);
    std::vector<Index> offsets(static_cast<std::size_t>(options.shape.dim) + 1);
    std::iota(offsets.begin(), offsets.end(), Index(0));
    std::vector<std::int32_t> columns(static_cast<std::size_t>(options.shape.dim));
    std::iota(columns.begin(), columns.end(), 0);
    const std::vector<double> values(columns.size(), 1.0);
    std::vector<double> targets;
    for (Index j = 0; j < options.shape.dim; ++j) {
      filter.add_feature(j, 1);
      targets.push_back(j % period == 0 ? 10 * random.normal() : 0);
    }
    std::vector<double> predictions(targets.size());
    filter.learn(Rows<double>::sparse(offsets, columns, values, options.shape.dim, targets), predictions);
    const UnknownFeatures from_all(filter, std::vector<Index>(columns.size()), 1);
    const UnknownFeatures from_sample(filter);
    const std::vector<Index> no_entries{0, 0};
    const std::vector<Index> missing{0};
    const auto row = Rows<double>::sparse(no_entries, {}, {}, options.shape.dim);
    const double expected = from_all.variance(filter, row, 0, missing);
    ASSERT_GT(expected, 1);
    // Relative standard error of the mean of 1,024 / period squared normal numbers.
    const double standard_error = std::sqrt(2.0 * static_cast<double>(period) / 1024);
    EXPECT_NEAR(from_sample.variance(filter, row, 0, missing) / expected, 1, 5 * standard_error) << period;
  }
}

}  // namespace
}  // namespace dyad
