#include "data/row_cache.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_rows;

TEST(RowCache, StoresRowsOfEitherLayout) {
  const auto rows = random_rows<double>(30, 6, 1, 0.5);
  const Vector<double> expected = test::brute_force_predictions(test::random_model<double>(6, 2, 3), rows.X);
  for (const bool dense_first : {true, false}) {
    RowCache<double> cache;
    cache.append((dense_first ? rows.dense() : rows.sparse()).slice(0, 10));
    cache.append((dense_first ? rows.sparse() : rows.dense()).slice(10, 20));
    ASSERT_EQ(cache.count(), 30);
    std::vector<double> predictions(30);
    test::random_model<double>(6, 2, 3).predict(cache.view(6), predictions);
    EXPECT_LT((as_vector(predictions) - expected).norm(), 1e-10);
    EXPECT_TRUE(std::equal(rows.targets.begin(), rows.targets.end(), cache.view(6).targets().begin()));
  }
}

TEST(RowCache, SkipsRowsOfWeightZero) {
  const auto rows = random_rows<double>(4, 3, 1);
  const std::vector<double> weights{0, 2, 0, 1};
  RowCache<double> cache;
  cache.append(rows.dense().weighted(weights));
  ASSERT_EQ(cache.count(), 2);
  EXPECT_EQ(cache.view(3).weight(0), 2);
  EXPECT_EQ(cache.view(3).targets()[1], rows.targets[3]);
}

TEST(ScaledRows, RestoresRowsAfterException) {
  const auto rows = random_rows<double>(5, 3, 1);
  for (const bool sparse : {false, true}) {
    RowCache<double> cache;
    cache.append(sparse ? rows.sparse() : rows.dense());
    const auto value = [&] {
      double found = 0;
      cache.view(3).for_each_entry(1, [&](Index j, double x) { found = j == 2 ? x : found; });
      return found;
    };
    try {
      const ScaledRows<double> scaled(cache, {0.5, 4, 0.125});
      EXPECT_EQ(value(), 8 * rows.X(1, 2));
      throw std::runtime_error("stop");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(value(), rows.X(1, 2));
    }
  }
}

TEST(ScaledRows, CopiesBorrowedValues) {
  const auto rows = random_rows<double>(4, 3, 1);
  SparseView borrowed;
  borrowed.columns = 3;
  std::vector<std::int64_t> offsets(rows.offsets.begin(), rows.offsets.end());
  borrowed.offsets = offsets.data();
  borrowed.indices = rows.columns.data();
  borrowed.values = rows.values.data();
  ASSERT_TRUE(RowCache<double>::can_borrow(borrowed));
  const std::vector<double> before = rows.values;
  RowCache<double> cache;
  cache.borrow(borrowed, 4);
  cache.append(rows.sparse());
  {
    const ScaledRows<double> scaled(cache, {2, 2, 2});
    EXPECT_EQ(cache.entries(), 12);
  }
  EXPECT_EQ(rows.values, before);
  EXPECT_EQ(cache.entries(), 12);
}

}  // namespace
}  // namespace dyad
