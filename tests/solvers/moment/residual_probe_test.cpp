#include "solvers/moment/residual_probe.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

MomentOptions probe_options(Index dim, Index rank, Index left_dim = 0, std::uint64_t seed = 1) {
  MomentOptions options;
  options.shape.dim = dim;
  options.shape.rank = rank;
  options.shape.left_dim = left_dim;
  options.moments = Moments::gaussian;
  options.seed = seed;
  return options;
}

/// Adds the rows in blocks of at most `block` rows. Returns the first direction that the probe finds in the windows.
std::optional<ResidualProbe<double>::MissedDirection> find_direction(ResidualProbe<double>& probe,
                                                                     const Rows<double>& rows, Index block = 1000) {
  for (Index first = 0; first < rows.count();) {
    const Index count = std::min({block, probe.rows_until_decision(), rows.count() - first});
    const Rows<double> slice = rows.slice(first, count);
    probe.add(slice, slice.targets());
    first += count;
    if (probe.rows_until_decision() > 0) continue;
    if (auto direction = probe.finish_window()) return direction;
  }
  return std::nullopt;
}

/// Rows whose targets are the predictions of `term`, plus standard normal noise times `noise`. The targets serve
/// as residuals.
test::OwnedRows<double> rows_with_direction(const Model<double>& term, Index count, double noise, std::uint64_t seed) {
  auto rows = test::random_rows<double>(count, term.dim(), seed);
  const Vector<double> f = test::brute_force_predictions(term, rows.X);
  for (Index i = 0; i < count; ++i) {
    double& target = rows.targets[static_cast<std::size_t>(i)];
    target = f[i] + noise * target;
  }
  return rows;
}

/// Rank-one model without linear terms.
Model<double> single_term(Index dim, Index left_dim, double value, std::uint64_t seed) {
  Model<double> term = test::random_model<double>(dim, 1, seed, left_dim);
  term.intercept = 0;
  std::fill(term.weights.begin(), term.weights.end(), 0.0);
  term.spectrum = {value};
  return term;
}

TEST(ResidualProbe, FindsAPlantedDirection) {
  for (const Index left_dim : {Index{0}, Index{12}})
    for (const double value : {0.5, -0.5}) {
      const Model<double> term = single_term(30, left_dim, value, 3);
      const auto rows = rows_with_direction(term, 4000, 0.1, 4);
      const Model<double> model = test::random_model<double>(30, 2, 5, left_dim);
      ResidualProbe<double> probe(probe_options(30, 2, left_dim), test::pool());
      const auto direction = find_direction(probe, rows.dense());
      ASSERT_TRUE(direction) << left_dim;
      EXPECT_GT(direction->explained_share, 0.1);
      // The direction replaces the weak factor of the model.
      Model<double> weak = model;
      weak.spectrum = {1, 0.01};
      const Model<double> next = add_direction(weak, *direction, false);
      EXPECT_GT(std::abs(next.spectrum[1]), 0.1);
      EXPECT_EQ(next.weights, weak.weights);
    }
}

TEST(ResidualProbe, FindsWeakDirectionsInNoiseByLongerWindows) {
  // The term has 2 * 0.05^2 = 0.5% of the variance of the noise. The shortest window has 60 rows.
  const Model<double> term = single_term(20, 0, 0.05, 3);
  const auto rows = rows_with_direction(term, 60000, 1, 4);
  ResidualProbe<double> probe(probe_options(20, 2), test::pool());
  const auto direction = find_direction(probe, rows.dense());
  ASSERT_TRUE(direction);
  EXPECT_GT(std::abs(direction->vector.dot(as_vector(term.factors))), 0.7);
}

// The bound of the header gives at most 4% false detections per window.
TEST(ResidualProbe, NoiseHasFewFalseDetections) {
  for (const Index left_dim : {Index{0}, Index{8}}) {
    int detections = 0;
    constexpr int trials = 200;
    for (int trial = 0; trial < trials; ++trial) {
      const auto seed = static_cast<std::uint64_t>(trial);
      ResidualProbe<double> probe(probe_options(20, 2, left_dim, seed), test::pool());
      const auto rows = test::random_rows<double>(probe.rows_until_decision(), 20, seed + 100);
      if (find_direction(probe, rows.dense())) ++detections;
    }
    EXPECT_LE(detections, 0.04 * trials) << left_dim;
  }
}

TEST(ResidualProbe, DoesNotDependOnTheBlocks) {
  const Model<double> term = single_term(15, 0, 0.4, 3);
  const auto rows = rows_with_direction(term, 3000, 0.2, 4);
  ResidualProbe<double> one(probe_options(15, 2), test::pool());
  ResidualProbe<double> other(probe_options(15, 2), test::pool());
  const auto direction = find_direction(one, rows.dense());
  const auto same = find_direction(other, rows.sparse(), 7);
  ASSERT_TRUE(direction && same);
  EXPECT_NEAR(direction->value, same->value, 1e-10);
  EXPECT_NEAR(std::abs(direction->vector.dot(same->vector)), 1, 1e-10);
}

TEST(ResidualProbe, ArchiveRestoresTheWindow) {
  const auto rows = test::random_rows<double>(200, 10, 1);
  MomentOptions options = probe_options(10, 2);
  options.moments = Moments::automatic;
  ThreadPool pool(1);
  ResidualProbe<double> probe(options, pool);
  (void)find_direction(probe, rows.dense().slice(0, 50));
  Archive saved;
  probe.archive(saved);
  ResidualProbe<double> resumed(options, pool);
  Archive loaded(saved.arrays());
  resumed.archive(loaded);
  EXPECT_EQ(probe.rows_until_decision(), resumed.rows_until_decision());
  for (ResidualProbe<double>* p : {&probe, &resumed}) (void)find_direction(*p, rows.dense().slice(50, 100));
  Archive one;
  Archive other;
  probe.archive(one);
  resumed.archive(other);
  EXPECT_EQ(one.arrays(), other.arrays());

  Archive empty(std::map<std::string, std::vector<double>>{});
  ResidualProbe<double> unchanged(options, pool);
  unchanged.archive(empty);
  EXPECT_EQ(unchanged.rows_until_decision(), 30);
}

}  // namespace
}  // namespace dyad
