#include "data/select_rows.h"

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

TEST(SelectRows, KeepsTheChosenRowsInOrder) {
  const auto rows = test::random_rows<double>(20, 6, 4, 0.5);
  for (const bool is_dense : {true, false})
    for (const int divisor : {1, 2, 3, 50}) {
      RowBlock<double> block;
      block.dim = 6;
      block.is_dense = is_dense;
      if (is_dense) {
        block.values.assign(rows.X.data(), rows.X.data() + rows.X.size());
      } else {
        block.offsets = rows.offsets;
        block.columns = rows.columns;
        block.values = rows.values;
      }
      block.targets = rows.targets;
      for (int i = 0; i < 20; ++i) {
        block.lines.push_back(i + 1);
        block.weights.push_back(i);
      }
      keep_rows(block, [&](Index i) { return i % divisor == 1 % divisor; });
      std::size_t kept = 0;
      for (Index i = 0; i < 20; ++i) {
        if (i % divisor != 1 % divisor) continue;
        EXPECT_EQ(block.lines[kept], i + 1);
        EXPECT_EQ(block.weights[kept], static_cast<double>(i));
        EXPECT_EQ(block.targets[kept], rows.targets[static_cast<std::size_t>(i)]);
        Eigen::RowVectorXd x = Eigen::RowVectorXd::Zero(6);
        block.view().for_each_entry(static_cast<Index>(kept), [&](Index j, double value) { x[j] = value; });
        EXPECT_EQ(x, rows.X.row(i));
        ++kept;
      }
      EXPECT_EQ(block.lines.size(), kept);
    }
}

}  // namespace
}  // namespace dyad
