#include "data/row_cache.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_rows;

TEST(RowCache, KeepWhatTheyAreGivenInEitherLayout) {
  const auto rows = random_rows<double>(30, 6, 1, 0.5);
  const Vector<double> expected = test::brute_force_predictions(test::random_model<double>(6, 2, 3), rows.X);
  for (const bool dense_first : {true, false}) {
    RowCache<double> kept;
    kept.append((dense_first ? rows.dense() : rows.sparse()).slice(0, 10));
    kept.append((dense_first ? rows.sparse() : rows.dense()).slice(10, 20));
    ASSERT_EQ(kept.count(), 30);
    std::vector<double> predictions(30);
    test::random_model<double>(6, 2, 3).predict(kept.view(6), predictions);
    EXPECT_LT((as_vector(predictions) - expected).norm(), 1e-10);
    EXPECT_TRUE(std::equal(rows.targets.begin(), rows.targets.end(), kept.view(6).targets().begin()));
  }
}

TEST(RowCache, LeaveOutRowsWithoutWeight) {
  const auto rows = random_rows<double>(4, 3, 1);
  const std::vector<double> weights{0, 2, 0, 1};
  RowCache<double> kept;
  kept.append(rows.dense().weighted(weights));
  ASSERT_EQ(kept.count(), 2);
  EXPECT_EQ(kept.view(3).weight(0), 2);
  EXPECT_EQ(kept.view(3).targets()[1], rows.targets[3]);
}

TEST(ScaledRows, RestoreTheRowsAlsoAfterAnException) {
  const auto rows = random_rows<double>(5, 3, 1);
  for (const bool sparse : {false, true}) {
    RowCache<double> kept;
    kept.append(sparse ? rows.sparse() : rows.dense());
    const auto value = [&] {
      double found = 0;
      kept.view(3).for_each_entry(1, [&](Index j, double x) { found = j == 2 ? x : found; });
      return found;
    };
    try {
      const ScaledRows<double> scaled(kept, {0.5, 4, 0.125});
      EXPECT_EQ(value(), 8 * rows.X(1, 2));
      throw std::runtime_error("stop");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(value(), rows.X(1, 2));
    }
  }
}

TEST(ScaledRows, CopyBorrowedValues) {
  const auto rows = random_rows<double>(4, 3, 1);
  MemorySparse lent;
  lent.columns = 3;
  std::vector<std::int64_t> offsets(rows.offsets.begin(), rows.offsets.end());
  lent.offsets = offsets.data();
  lent.indices = rows.columns.data();
  lent.values = rows.values.data();
  ASSERT_TRUE(RowCache<double>::can_borrow(lent));
  const std::vector<double> before = rows.values;
  RowCache<double> kept;
  kept.borrow(lent, 4);
  kept.append(rows.sparse());
  {
    const ScaledRows<double> scaled(kept, {2, 2, 2});
    EXPECT_EQ(kept.entries(), 12);
  }
  EXPECT_EQ(rows.values, before);
  EXPECT_EQ(kept.entries(), 12);
}

}  // namespace
}  // namespace dyad
