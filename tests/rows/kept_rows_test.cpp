#include "rows/kept_rows.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

using test::random_rows;

TEST(KeptRows, KeepWhatTheyAreGivenInEitherLayout) {
  const auto rows = random_rows<double>(30, 6, 1, 0.5);
  const Vector<double> expected = test::brute_force_predictions(test::random_model<double>(6, 2, 3), rows.X);
  for (const bool dense_first : {true, false}) {
    KeptRows<double> kept;
    kept.append((dense_first ? rows.dense() : rows.sparse()).slice(0, 10));
    kept.append((dense_first ? rows.sparse() : rows.dense()).slice(10, 20));
    ASSERT_EQ(kept.count(), 30);
    std::vector<double> predictions(30);
    test::random_model<double>(6, 2, 3).predict(kept.view(6), predictions);
    EXPECT_LT((as_vector(predictions) - expected).norm(), 1e-10);
    EXPECT_TRUE(std::equal(rows.targets.begin(), rows.targets.end(), kept.view(6).targets().begin()));
  }
}

TEST(KeptRows, LeaveOutRowsWithoutWeight) {
  const auto rows = random_rows<double>(4, 3, 1);
  const std::vector<double> weights{0, 2, 0, 1};
  KeptRows<double> kept;
  kept.append(rows.dense().weighted(weights));
  ASSERT_EQ(kept.count(), 2);
  EXPECT_EQ(kept.view(3).weight(0), 2);
  EXPECT_EQ(kept.view(3).targets()[1], rows.targets[3]);
}

TEST(KeptRows, ScaleAndBack) {
  const auto rows = random_rows<double>(5, 3, 1);
  const std::vector<double> there{2, 0.25, 8};
  const std::vector<double> back{0.5, 4, 0.125};
  KeptRows<double> kept;
  kept.append(rows.dense());
  kept.scale(there);
  EXPECT_EQ(kept.view(3).row(1)[2], 8 * rows.X(1, 2));
  kept.scale(back);
  EXPECT_EQ(kept.view(3).row(1)[2], rows.X(1, 2));
}

}  // namespace
}  // namespace dyad
