#include "solvers/kalman/hierarchical_prior.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "solvers/kalman/filter.h"
#include "solvers/kalman/log_noise.h"
#include "support.h"

namespace dyad {
namespace {

/// Tables of three columns with `levels` categories each, in sparse form: y = u + v + w + p q + noise.
struct Table {
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<double> values;
  std::vector<double> targets;
  Index levels;

  Table(Index count, Index level_count, std::uint64_t seed) : levels(level_count) {
    Random truth(7, 0);
    std::vector<double> effects;
    for (Index i = 0; i < 6 * levels; ++i) effects.push_back(truth.normal());
    Random random(seed, 1);
    for (Index i = 0; i < count; ++i) {
      double y = 0.3 * random.normal();
      std::vector<std::size_t> chosen;
      for (Index c = 0; c < 3; ++c) {
        const Index level = static_cast<Index>(random.uniform() * static_cast<double>(levels));
        chosen.push_back(static_cast<std::size_t>(c * levels + level));
        columns.push_back(static_cast<std::int32_t>(chosen.back()));
        values.push_back(1);
        y += 1 + effects[chosen.back()];
      }
      const auto half = static_cast<std::size_t>(3 * levels);
      y += effects[half + chosen[0]] * effects[half + chosen[1]];
      targets.push_back(y);
      offsets.push_back(static_cast<Index>(columns.size()));
    }
  }

  [[nodiscard]] Rows<double> rows() const {
    return Rows<double>::sparse(offsets, columns, values, 3 * levels, targets);
  }
};

KalmanOptions options_for(Index dim, Index rank, Diagonal diagonal = Diagonal::zero) {
  KalmanOptions options;
  options.shape.dim = dim;
  options.shape.rank = rank;
  options.shape.diagonal = diagonal;
  options.entries_per_row = 3;
  return options;
}

FilterGroups column_groups(bool absorbs_means = true) {
  return {.count = 4, .have_mean = {true, true, true, false}, .one_feature_per_row = absorbs_means};
}

KalmanFilter<double> make_filter(Index levels, Index rank, Diagonal diagonal = Diagonal::zero,
                                 bool absorbs_means = true) {
  KalmanFilter<double> filter(options_for(3 * levels, rank, diagonal), Prior{4, 0.5, 0.5, 0.3, 0},
                              column_groups(absorbs_means), 1);
  for (Index j = 0; j < 3 * levels; ++j) {
    filter.set_group(j, j / levels);
    filter.add_feature(j, 1);
  }
  return filter;
}

void learn(KalmanFilter<double>& filter, const Rows<double>& rows) {
  std::vector<double> predictions(static_cast<std::size_t>(rows.count()));
  filter.learn(rows, predictions);
}

TEST(HierarchicalPrior, UpdateEqualsFormulaOfEachLevel) {
  HierarchicalPrior prior(2, 2, 1, 2, 3);
  PriorSums sums = prior.zero_sums();
  sums.squares = {5, 6, 30, 0, 1, 2, 10, 0};  // group-major: two factors, weight, square
  sums.counts = {3, 4, 20, 0, 2, 1, 5, 0};
  prior.update(sums);
  const double all = (10 * 1 + 5 + 6 + 1 + 2) / (10.0 + 3 + 4 + 2 + 1);
  const double first = (10 * all + 11) / (10 + 7);
  const double second = (10 * all + 3) / (10 + 3);
  const double weights = (10 * 2 + 40) / (10.0 + 25);
  EXPECT_DOUBLE_EQ(prior.variances(0)[0], (10 * first + 5) / 13);
  EXPECT_DOUBLE_EQ(prior.variances(0)[1], (10 * first + 6) / 14);
  EXPECT_DOUBLE_EQ(prior.variances(1)[1], (10 * second + 2) / 11);
  EXPECT_DOUBLE_EQ(prior.variances(0)[2], (10 * weights + 30) / 30);
  EXPECT_DOUBLE_EQ(prior.variances(1)[2], (10 * weights + 10) / 15);
  EXPECT_DOUBLE_EQ(prior.variances(1)[3], 3);
}

TEST(HierarchicalPrior, UpdateChangesVariancesByAtMostAFactorOfFour) {
  HierarchicalPrior prior(1, 1, 1, 1, 1);
  PriorSums sums = prior.zero_sums();
  sums.squares = {1e6, 0, 0};
  sums.counts = {10, 1e6, 0};
  prior.update(sums);
  EXPECT_DOUBLE_EQ(prior.variances(0)[0], 4);
  EXPECT_DOUBLE_EQ(prior.variances(0)[1], 0.25);
}

TEST(HierarchicalPrior, SumsAddOverFeatures) {
  const Table table(3000, 8, 1);
  KalmanFilter<double> filter = make_filter(8, 2);
  learn(filter, table.rows());
  PriorSums twice = filter.prior_sums();
  twice.add(filter.prior_sums());
  const PriorSums once = filter.prior_sums();
  for (std::size_t i = 0; i < once.squares.size(); ++i) {
    EXPECT_DOUBLE_EQ(twice.squares[i], 2 * once.squares[i]);
    EXPECT_DOUBLE_EQ(twice.counts[i], 2 * once.counts[i]);
  }
}

/// The evidence of the data, posterior divided by prior, does not depend on the prior.
TEST(HierarchicalPrior, UpdateKeepsTheEvidenceOfTheData) {
  const Table table(180, 8, 1);  // fewer rows than before the first update in learn()
  KalmanFilter<double> filter = make_filter(8, 2);
  learn(filter, table.rows());
  const auto evidence = [&] {
    std::vector<double> precisions;
    for (Index j = 0; j < 24; ++j) {
      const auto feature = filter.feature_posterior(j);
      const auto tau = filter.learned_prior()->variances(j / 8);
      precisions.push_back(1 / feature.weight_variance - 1 / tau[2]);
      precisions.push_back(feature.weight / feature.weight_variance);
      precisions.push_back(1 / feature.factor_variances[1] - 1 / tau[1]);
    }
    return precisions;
  };
  const std::vector<double> before = evidence();
  const double weight = filter.feature_posterior(0).weight;
  filter.update_prior();
  const std::vector<double> after = evidence();
  EXPECT_NE(filter.feature_posterior(0).weight, weight);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 1e-9 * (1 + std::abs(before[i])));
}

/// 3,000 weights of variance 0.25, each seen in 20 rows with noise 1, without interactions. The variance of 3,000
/// normal numbers has a relative standard error of sqrt(2 / 3000) = 2.6%.
TEST(HierarchicalPrior, LearnsTheVarianceOfTheWeights) {
  constexpr Index count = 3000;
  for (const double start : {0.01, 5.0}) {
    KalmanOptions options = options_for(count, 1);
    options.entries_per_row = 1;
    KalmanFilter<double> filter(options, Prior{1, start, start, 1e-4, 0}, FilterGroups{}, 1);
    for (Index j = 0; j < count; ++j) filter.add_feature(j, 1);
    Random random(1, 2);
    std::vector<double> weights;
    for (Index j = 0; j < count; ++j) weights.push_back(0.5 * random.normal());
    std::vector<Index> offsets{0};
    std::vector<std::int32_t> columns;
    std::vector<double> values;
    std::vector<double> targets;
    for (Index i = 0; i < 20 * count; ++i) {
      columns.push_back(static_cast<std::int32_t>(i % count));
      values.push_back(1);
      offsets.push_back(i + 1);
      targets.push_back(weights[static_cast<std::size_t>(i % count)] + random.normal());
    }
    learn(filter, Rows<double>::sparse(offsets, columns, values, count, targets));
    for (int i = 0; i < 5; ++i) filter.update_prior();
    EXPECT_NEAR(filter.learned_prior()->variances(0)[1], 0.25, 5 * 0.026 * 0.25 + 0.02) << start;
    EXPECT_NEAR(filter.noise_variance(), 1, 0.1);
  }
}

/// Absorbed into the intercept and weights, or added to the parameters of each feature.
/// Updates of many features take much longer than a row. The first update is after 200 rows.
TEST(HierarchicalPrior, UpdatesOfManyFeaturesAreSpaced) {
  for (const Index levels : {100, 50'000}) {
    KalmanFilter<double> filter = make_filter(levels, 8);
    const Table first(1000, levels, 3);
    learn(filter, first.rows());
    const std::vector<double> before(filter.learned_prior()->variances(0).begin(),
                                     filter.learned_prior()->variances(0).end());
    const Table next(1000, levels, 4);
    learn(filter, next.rows());
    const std::vector<double> after(filter.learned_prior()->variances(0).begin(),
                                    filter.learned_prior()->variances(0).end());
    EXPECT_NE(before[0], 0.3) << levels;
    EXPECT_EQ(before == after, levels == 50'000);
  }
}

TEST(HierarchicalPrior, ModelEqualsPredictionsOfTheFilter) {
  const Table table(2000, 6, 1);
  for (const bool absorbs_means : {false, true})
    for (const Diagonal diagonal : {Diagonal::zero, Diagonal::tied, Diagonal::free}) {
      KalmanFilter<double> filter = make_filter(6, 3, diagonal, absorbs_means);
      learn(filter, table.rows());
      std::vector<double> expected(2000);
      std::vector<double> variances(2000);
      std::vector<double> predictions(2000);
      filter.predict(table.rows(), expected, variances);
      filter.model().predict(table.rows(), predictions);
      for (std::size_t i = 0; i < 2000; ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-9);
    }
}

TEST(HierarchicalPrior, UnknownFeaturesHaveTheMeanOfTheirGroup) {
  const Table table(20000, 40, 1);
  KalmanFilter<double> filter = make_filter(40, 2);
  learn(filter, table.rows());
  // Known categories 0 and 40 of the first two columns; an unknown one, or none, of the third column.
  const std::vector<std::int32_t> columns{0, 40, 120 + 2};
  const std::vector<double> values{1, 1, 1};
  const std::vector<Index> offsets{0, 3};
  const std::vector<Index> short_offsets{0, 2};
  double unknown = 0;
  double variance = 0;
  filter.predict(Rows<double>::sparse_unchecked<Index>(offsets, columns, values, 124, {}), {&unknown, 1},
                 {&variance, 1});
  double absorbed = 0;
  filter.model().predict(Rows<double>::sparse_unchecked<Index>(short_offsets, columns, values, 120, {}),
                         {&absorbed, 1});
  EXPECT_NEAR(unknown, absorbed, 1e-9);
  double mean = 0;
  double known_variance = 0;
  for (std::int32_t j = 80; j < 120; ++j) {
    const std::vector<std::int32_t> known{0, 40, j};
    double prediction = 0;
    double v = 0;
    filter.predict(Rows<double>::sparse_unchecked<Index>(offsets, known, values, 120, {}), {&prediction, 1}, {&v, 1});
    mean += prediction / 40;
    known_variance += v / 40;
  }
  // The effects of the third column have standard deviation 1, and their mean over 40 categories 1/sqrt(40) = 0.16.
  EXPECT_NEAR(unknown, mean, 5 * 0.16);
  EXPECT_GT(variance, known_variance + 0.3);
}

TEST(HierarchicalPrior, ArchiveContinuesBitIdentically) {
  const Table table(1500, 8, 1);
  KalmanFilter<double> filter = make_filter(8, 2);
  learn(filter, table.rows().slice(0, 700));
  Archive saved;
  filter.archive(saved);
  KalmanFilter<double> loaded(options_for(24, 2), {}, 1);
  Archive archive(saved.arrays());
  loaded.archive(archive);
  ASSERT_TRUE(loaded.learns_prior());
  learn(filter, table.rows().slice(700, 800));
  learn(loaded, table.rows().slice(700, 800));
  Archive first;
  Archive second;
  filter.archive(first);
  loaded.archive(second);
  EXPECT_EQ(first.arrays(), second.arrays());
}

TEST(HierarchicalPrior, MergeOfOneWorkerEqualsSequentialUpdate) {
  const Table table(600, 8, 1);
  KalmanFilter<double> start = make_filter(8, 2);
  KalmanFilter<double> worker = start;
  worker.hold_prior();
  learn(worker, table.rows());
  NaturalParameters combined = worker.natural_parameters();
  ASSERT_EQ(combined.precisions.size(), static_cast<std::size_t>(start.natural_parameter_count()));
  start.merge(combined, 600, worker.noise_variance());
  std::vector<double> expected(600);
  std::vector<double> predictions(600);
  std::vector<double> variances(600);
  worker.predict(table.rows(), expected, variances);
  start.predict(table.rows(), predictions, variances);
  for (std::size_t i = 0; i < 600; ++i) EXPECT_NEAR(predictions[i], expected[i], 1e-9);
}

/// Repeated learning by stochastic expectation propagation does not count rows twice.
TEST(HierarchicalPrior, RelearnDoesNotAccumulateEvidence) {
  const Table table(4000, 10, 1);
  KalmanFilter<double> filter = make_filter(10, 2);
  learn(filter, table.rows());
  const double once = filter.feature_posterior(0).weight_variance;
  std::vector<float> feature_rows(30);
  for (const std::int32_t j : table.columns) feature_rows[static_cast<std::size_t>(j)] += 1;
  filter.start_further_passes();
  for (int pass = 0; pass < 5; ++pass) filter.relearn(table.rows(), feature_rows, 4000);
  // Five more passes with accumulation would divide the variance by about 6.
  EXPECT_GT(filter.feature_posterior(0).weight_variance, 0.5 * once);
  EXPECT_TRUE(filter.is_finite());
}

TEST(LogNoiseTracker, ConvergesToTheVarianceOfTheResiduals) {
  for (const double start : {0.1, 10.0}) {
    LogNoiseTracker noise(start, 100);
    Random random(1, 0);
    for (int i = 0; i < 20000; ++i) noise.observe(2 * std::pow(random.normal(), 2), 0);
    // Average over 600 rows: the relative standard error of a variance is sqrt(2 / 600) = 5.8%.
    EXPECT_NEAR(noise.value(), 2, 5 * 0.058 * 2);
  }
}

}  // namespace
}  // namespace dyad
