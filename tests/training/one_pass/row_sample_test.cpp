#include "training/one_pass/row_sample.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "data/shuffled_rows.h"
#include "support.h"
#include "training/one_pass/further_passes.h"

namespace dyad {
namespace {

StreamOptions stream_options_for(Index dim, Index rank) {
  StreamOptions options;
  options.kalman.shape.dim = dim;
  options.kalman.shape.rank = rank;
  options.kalman.shape.diagonal = Diagonal::zero;
  return options;
}

/// Rows of two categories of 20 and 30 levels: y = u + v + noise.
struct Ratings {
  std::vector<std::array<int, 2>> levels;
  std::vector<double> y;

  explicit Ratings(int count, std::uint64_t seed = 1) {
    Random truth(5, 0);
    std::vector<double> effects;
    for (int i = 0; i < 50; ++i) effects.push_back(truth.normal());
    Random random(seed, 1);
    for (int i = 0; i < count; ++i) {
      const int u = static_cast<int>(20 * random.uniform());
      const int v = static_cast<int>(30 * random.uniform());
      levels.push_back({u, 20 + v});
      y.push_back(effects[static_cast<std::size_t>(u)] + effects[static_cast<std::size_t>(20 + v)] +
                  0.5 * random.normal());
    }
  }

  /// Rows in this order.
  void sort(bool by_target) {
    std::vector<std::size_t> order(y.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return by_target ? y[a] < y[b] : levels[a][0] < levels[b][0];
    });
    Ratings sorted(0);
    for (const std::size_t i : order) {
      sorted.levels.push_back(levels[i]);
      sorted.y.push_back(y[i]);
    }
    *this = sorted;
  }

  [[nodiscard]] test::OwnedRows<double> rows() const {
    RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(static_cast<Index>(y.size()), 50);
    for (std::size_t i = 0; i < y.size(); ++i)
      for (const int level : levels[i]) X(static_cast<Index>(i), level) = 1;
    return {X, y};
  }
};

/// Sample and learner after one pass over the rows.
struct Pass {
  RowSample<double> sample{1};
  StreamLearner<double> learner{stream_options_for(50, 2), test::pool()};

  explicit Pass(const Rows<double>& rows) {
    std::vector<double> predictions(static_cast<std::size_t>(rows.count()));
    learner.learn(rows, predictions);
    sample.add(rows, predictions, *learner.filter().options().likelihood);
  }
};

TEST(RowSample, DetectsRowsSortedByTheTarget) {
  Ratings ratings(6000);
  const auto random_rows = ratings.rows();
  const Pass random(random_rows.sparse());
  EXPECT_FALSE(random.sample.order_hurts(random.learner.filter()));
  EXPECT_FALSE(random.sample.has_similar_neighbors());
  ratings.sort(true);
  const auto sorted_rows = ratings.rows();
  const Pass sorted(sorted_rows.sparse());
  EXPECT_TRUE(sorted.sample.order_hurts(sorted.learner.filter()));
}

TEST(RowSample, DetectsSimilarNeighbors) {
  Ratings ratings(6000);
  ratings.sort(false);
  const auto rows = ratings.rows();
  EXPECT_TRUE(Pass(rows.sparse()).sample.has_similar_neighbors());
  EXPECT_TRUE(Pass(rows.dense()).sample.has_similar_neighbors());
}

TEST(RowSample, HasAllRowsUntilItIsFull) {
  const auto few = Ratings(1000).rows();
  EXPECT_TRUE(Pass(few.sparse()).sample.has_all_rows());
  const auto many = Ratings(20000).rows();
  EXPECT_FALSE(Pass(many.sparse()).sample.has_all_rows());
}

/// The mean index of a uniform sample of n of N rows has the standard error N / sqrt(12 n).
TEST(RowSample, IsUniform) {
  constexpr Index count = 60000;
  const RowMajorMatrix<double> X = RowMajorMatrix<double>::Ones(count, 1);
  std::vector<double> y(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(i);
  const test::OwnedRows<double> rows(X, y);
  RowSample<double> sample(1);
  sample.add(rows.sparse(), std::vector<double>(y.size()), likelihood_of(Task::regression));
  const Rows<double> view = sample.view(1);
  ASSERT_EQ(view.count(), sample.count());
  ASSERT_LT(view.count(), count);
  double mean = 0;
  for (const double target : view.targets()) mean += target / static_cast<double>(view.count());
  EXPECT_NEAR(mean, (count - 1) / 2.0, 5 * count / std::sqrt(12.0 * static_cast<double>(view.count())));
  EXPECT_NEAR(sample.constant_loss(likelihood_of(Task::regression)), count / 12.0 * count, 0.05 * count / 12.0 * count);
}

TEST(RowSample, CopiesRowsOfBothLayouts) {
  const auto rows = test::random_rows<double>(300, 4, 1, 0.5);
  for (const bool is_sparse : {false, true}) {
    RowSample<double> sample(1);
    const Rows<double> source = is_sparse ? rows.sparse() : rows.dense();
    sample.add(source, std::vector<double>(300), likelihood_of(Task::regression));
    const Rows<double> copy = sample.view(4);
    ASSERT_EQ(copy.count(), 300);
    EXPECT_EQ(copy.is_sparse(), is_sparse);
    for (Index i = 0; i < 300; ++i) {
      Vector<double> x = Vector<double>::Zero(4);
      copy.for_each_entry(i, [&](Index j, double value) { x[j] = value; });
      EXPECT_EQ(x, rows.X.row(i).transpose());
      EXPECT_EQ(copy.targets()[static_cast<std::size_t>(i)], rows.targets[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(ShuffledRows, ArePermutationsOfTheSelectedRows) {
  const auto rows = test::random_rows<double>(100, 3, 1, 0.7);
  for (const bool is_sparse : {false, true})
    for (const bool selects : {false, true}) {
      std::vector<Index> selected;
      if (selects) selected = {3, 7, 50};
      ShuffledRows<double> shuffled(is_sparse ? rows.sparse() : rows.dense(), selected, 1, 2);
      std::multiset<double> targets;
      while (true) {
        const Rows<double> block = shuffled.next(17);
        if (block.count() == 0) break;
        EXPECT_LE(block.count(), 17);
        targets.insert(block.targets().begin(), block.targets().end());
      }
      std::multiset<double> expected;
      if (selects)
        for (const Index i : selected) expected.insert(rows.targets[static_cast<std::size_t>(i)]);
      else
        expected.insert(rows.targets.begin(), rows.targets.end());
      EXPECT_EQ(targets, expected);
    }
}

FurtherPassesOptions<double> passes_options(Index max_passes) {
  FurtherPassesOptions<double> options;
  options.max_passes = max_passes;
  options.loss = [](double y, double f) { return (y - f) * (y - f); };
  return options;
}

TEST(FurtherPasses, ShuffledPassRemediesRowsSortedByTheTarget) {
  Ratings ratings(6000);
  ratings.sort(true);
  const auto sorted = ratings.rows();
  const Pass pass(sorted.sparse());
  const ShuffledPass<double> shuffled = learn_shuffled(pass.learner, sorted.sparse(), passes_options(1), test::pool());
  // The noise variance is 0.25, and 50 unknown effects of 6,000 rows add about 1%.
  EXPECT_LT(pass.sample.loss(shuffled.filter), 0.28);
  EXPECT_GT(pass.sample.loss(pass.learner.filter()), 0.5);
  EXPECT_GT(shuffled.loss, 0.22);
}

TEST(FurtherPasses, SelectPassesByHeldOutRows) {
  const auto rows = Ratings(3000).rows();
  const Pass pass(rows.sparse());
  const auto run = [&](Index max_passes) {
    return train_further_passes(pass.learner.filter(), rows.sparse(), passes_options(max_passes));
  };
  const auto result = run(4);
  EXPECT_GE(result.passes, 1);
  EXPECT_LE(result.passes, 4);
  EXPECT_LE(result.best, result.one_pass);
  EXPECT_EQ(result.filter.has_value(), result.passes > 1);
  EXPECT_NEAR(static_cast<double>(result.held_out_rows), 300, 5 * std::sqrt(270.0));
  const auto again = run(4);
  EXPECT_EQ(again.best, result.best);
  EXPECT_EQ(run(1).passes, 1);
}

}  // namespace
}  // namespace dyad
