#include "inference/strongest_pairs.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

std::vector<Pair> all_pairs(const Model<double>& model) {
  const Matrix<double> M = test::dense_interactions(model);
  std::vector<Pair> pairs;
  for (Index i = 0; i < M.rows(); ++i)
    for (Index j = model.is_bilinear() ? 0 : i; j < M.cols(); ++j) {
      double coefficient = M(i, j);
      if (!model.is_bilinear() && i != j) coefficient *= 2;
      if (i == j && !model.squares.empty()) coefficient += model.squares[static_cast<std::size_t>(i)];
      pairs.push_back({i, j, coefficient});
    }
  std::sort(pairs.begin(), pairs.end(),
            [](const Pair& a, const Pair& b) { return std::abs(a.coefficient) > std::abs(b.coefficient); });
  return pairs;
}

TEST(StrongestPairs, EqualSortedListOfAllPairs) {
  for (const Index left_dim : {Index(0), Index(11)})
    for (const bool has_squares : {false, true}) {
      Model<double> model = test::random_model<double>(40, 3, 1, left_dim);
      if (has_squares && left_dim == 0) {
        Random random(1, 0);
        model.squares.resize(40);
        for (double& square : model.squares) square = 0.1 * random.normal();
      }
      const std::vector<Pair> expected = all_pairs(model);
      for (const Index top : {Index(0), Index(1), Index(10), Index(1000)}) {
        const StrongestPairs found = strongest_pairs(model, top);
        ASSERT_EQ(found.pairs.size(), std::min(static_cast<std::size_t>(top), expected.size()));
        EXPECT_TRUE(found.is_exact);
        for (std::size_t i = 0; i < found.pairs.size(); ++i) {
          EXPECT_NEAR(std::abs(found.pairs[i].coefficient), std::abs(expected[i].coefficient), 1e-12);
          EXPECT_EQ(found.pairs[i].left, expected[i].left);
          EXPECT_EQ(found.pairs[i].right, expected[i].right);
        }
      }
    }
}

TEST(StrongestPairs, BoundHoldsForTruncatedSearch) {
  const Model<double> model = test::random_model<double>(200, 4, 2);
  const std::vector<Pair> expected = all_pairs(model);
  const StrongestPairs found = strongest_pairs(model, 500, {}, 100);
  EXPECT_FALSE(found.is_exact);
  for (const Pair& pair : expected) {
    const bool is_listed = std::any_of(found.pairs.begin(), found.pairs.end(),
                                       [&](const Pair& p) { return p.left == pair.left && p.right == pair.right; });
    if (!is_listed) {
      EXPECT_LE(std::abs(pair.coefficient), std::max(found.bound, std::abs(found.pairs.back().coefficient)) + 1e-12);
    }
  }
}

TEST(StrongestPairs, OmitPairsAndSquaresOfExclusiveFeatures) {
  const Model<double> model = test::random_model<double>(12, 2, 1);
  const std::vector<Index> columns{-1, 0, 0, 0, -1, 1, 1, 2, -1, 1, 0, -1};
  const auto excluded = [&](const Pair& pair) {
    const Index column = columns[static_cast<std::size_t>(pair.left)];
    return column >= 0 && column == columns[static_cast<std::size_t>(pair.right)];
  };
  std::vector<Pair> expected = all_pairs(model);
  std::erase_if(expected, excluded);
  const StrongestPairs found = strongest_pairs(model, 1000, columns);
  ASSERT_EQ(found.pairs.size(), expected.size());
  for (const Pair& pair : found.pairs) EXPECT_FALSE(excluded(pair));
}

TEST(StrongestPairs, OmitZeroSquares) {
  Model<double> model = test::random_model<double>(10, 2, 1);
  model.squares.resize(10);
  for (Index j = 0; j < 10; ++j) model.squares[static_cast<std::size_t>(j)] = -model.interaction(j, j);
  for (const Pair& pair : strongest_pairs(model, 1000).pairs) EXPECT_NE(pair.left, pair.right);
}

}  // namespace
}  // namespace dyad
