#include <dyad/rows.h>

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(Rows, SliceIsTheSameRows) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  const std::vector<double> targets{10, 20, 30};
  const Rows<double> part = Rows<double>::dense(values, 2, targets).slice(1, 2);
  EXPECT_EQ(part.count(), 2);
  EXPECT_EQ(part.row(1)[0], 5);
  EXPECT_EQ(part.targets()[0], 20);
  EXPECT_EQ(part.targets().size(), 2);

  const std::vector<Index> offsets{0, 1, 3, 3};
  const std::vector<std::int32_t> columns{4, 0, 2};
  const std::vector<double> entries{7, 8, 9};
  const Rows<double> sparse = Rows<double>::sparse(offsets, columns, entries, 5, targets).slice(1, 1);
  EXPECT_EQ(sparse.count(), 1);
  EXPECT_EQ(sparse.offset(1) - sparse.offset(0), 2);
  EXPECT_EQ(sparse.values()[sparse.offset(0)], 8);
}

TEST(Rows, RefusesWhatDoesNotFit) {
  const std::vector<double> five(5);
  const std::vector<double> two(2);
  EXPECT_THROW(Rows<double>::dense(five, 2), std::invalid_argument);
  EXPECT_THROW(Rows<double>::dense(five, 0), std::invalid_argument);
  EXPECT_THROW(Rows<double>::dense(five, 1, two), std::invalid_argument);
  EXPECT_THROW((void)Rows<double>::dense(five, 1).slice(4, 2), std::invalid_argument);
  EXPECT_THROW((void)Rows<double>::dense(five, 1).slice(-1, 2), std::invalid_argument);
}

TEST(Rows, RefusesBrokenSparseRows) {
  const std::vector<double> values{1, 2};
  const auto make = [&](const std::vector<Index>& offsets, const std::vector<std::int32_t>& columns, Index dim) {
    return Rows<double>::sparse(offsets, columns, values, dim);
  };
  EXPECT_NO_THROW(make({0, 1, 2}, {0, 2}, 3));
  EXPECT_THROW(make({}, {0, 2}, 3), std::invalid_argument);
  EXPECT_THROW(make({1, 2}, {0, 2}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 3}, {0, 2}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 2, 1, 2}, {0, 2}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 1, 2}, {0, 3}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 1, 2}, {-1, 2}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 2}, {0}, 3), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
