#include <gtest/gtest.h>

#include "solvers/kalman/filter.h"
#include "support.h"

namespace dyad {
namespace {

KalmanFilter<double> make_filter(Diagonal diagonal) {
  KalmanOptions options;
  options.shape.dim = 7;
  options.shape.rank = 3;
  options.shape.diagonal = diagonal;
  options.entries_per_row = 7;
  KalmanFilter<double> filter(options, {}, 0.5);
  for (Index j = 0; j < options.shape.dim; ++j) filter.add_feature(j, 1);
  return filter;
}

void expect_equal_posteriors(const KalmanFilter<double>& a, const KalmanFilter<double>& b) {
  const NaturalParameters a_natural = a.natural_parameters();
  const NaturalParameters b_natural = b.natural_parameters();
  ASSERT_EQ(a_natural.precisions.size(), static_cast<std::size_t>(a.natural_parameter_count()));
  for (std::size_t i = 0; i < a_natural.precisions.size(); ++i) {
    EXPECT_NEAR(a_natural.precisions[i], b_natural.precisions[i], 1e-9 * a_natural.precisions[i]);
    EXPECT_NEAR(a_natural.moments[i], b_natural.moments[i], 1e-9 * (1 + std::abs(a_natural.moments[i])));
  }
}

TEST(KalmanMerge, MergeOfOneWorkerEqualsSequentialUpdate) {
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    const auto rows = test::random_rows<double>(60, 7, 1);
    const KalmanFilter<double> start = make_filter(diagonal);
    KalmanFilter<double> worker = start;
    std::vector<double> predictions(60);
    worker.learn(rows.dense(), predictions);
    NaturalParameters gain = worker.natural_parameters();
    gain.add(-1, start.natural_parameters());
    NaturalParameters combined = start.natural_parameters();
    combined.add(1, gain);
    KalmanFilter<double> merged = start;
    merged.merge(combined, 60, worker.noise_variance());
    expect_equal_posteriors(merged, worker);
    EXPECT_DOUBLE_EQ(merged.noise_variance(), worker.noise_variance());
    EXPECT_DOUBLE_EQ(merged.rows(), worker.rows());
  }
}

TEST(KalmanMerge, LaplacePrecisionsAddOverWorkers) {
  for (const Diagonal diagonal : {Diagonal::tied, Diagonal::zero, Diagonal::free}) {
    const auto rows = test::random_rows<double>(60, 7, 1);
    const KalmanFilter<double> fit = make_filter(diagonal);
    KalmanFilter<double> whole = fit;
    whole.add_laplace_precisions(rows.dense());
    NaturalParameters combined = fit.natural_parameters();
    for (const Index first : {0, 20, 40}) {
      KalmanFilter<double> worker = fit;
      worker.add_laplace_precisions(rows.dense().slice(first, 20));
      combined.add(1, worker.natural_parameters());
      combined.add(-1, fit.natural_parameters());
    }
    KalmanFilter<double> merged = fit;
    merged.merge(combined, 60, fit.noise_variance());
    expect_equal_posteriors(merged, whole);
  }
}

TEST(KalmanMerge, MergeIgnoresInvalidPrecisions) {
  KalmanFilter<double> filter = make_filter(Diagonal::zero);
  const KalmanFilter<double> before = filter;
  NaturalParameters invalid = filter.natural_parameters();
  for (double& precision : invalid.precisions) precision = -precision;
  filter.merge(invalid, 1, 0.5);
  expect_equal_posteriors(filter, before);
}

}  // namespace
}  // namespace dyad
