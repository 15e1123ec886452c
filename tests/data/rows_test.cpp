#include <dyad/rows.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "data/row_hash.h"

namespace dyad {
namespace {

using Entries = std::vector<std::pair<Index, double>>;

Entries entries_of(const Rows<double>& rows, Index i) {
  Entries entries;
  rows.for_each_entry(i, [&](Index j, double x) { entries.emplace_back(j, x); });
  return entries;
}

TEST(Rows, SliceSelectsConsecutiveRows) {
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
  EXPECT_EQ(entries_of(sparse, 0), (Entries{{0, 8}, {2, 9}}));
}

TEST(Rows, OffsetTypesAreEquivalent) {
  const std::vector<Index> offsets{0, 1, 3, 3};
  const std::vector<std::int32_t> short_offsets{0, 1, 3, 3};
  const std::vector<std::int32_t> columns{4, 0, 2};
  const std::vector<double> values{7, 8, 9};
  const Rows<double> wide = Rows<double>::sparse(offsets, columns, values, 5);
  const Rows<double> narrow = Rows<double>::sparse(short_offsets, columns, values, 5);
  EXPECT_TRUE(narrow.is_sparse());
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(entries_of(narrow, i), entries_of(wide, i));
  EXPECT_EQ(entries_of(narrow.slice(1, 2), 0), entries_of(wide, 1));
  EXPECT_THROW((void)Rows<double>::sparse(std::vector<std::int32_t>{0, 2, 1, 3}, columns, values, 5),
               std::invalid_argument);
}

TEST(Rows, MarksSelectRowsByWeight) {
  const std::vector<double> values{1, 2, 3, 4};
  const std::vector<double> weights{5, 6, 7, 8};
  const std::vector<std::uint8_t> marks{0, 1, 2, 1};
  const Rows<double> rows = Rows<double>::dense(values, 1).weighted(weights);
  const auto weights_of = [](const Rows<double>& view) {
    std::vector<double> all;
    for (Index i = 0; i < view.count(); ++i) all.push_back(view.weight(i));
    return all;
  };
  EXPECT_EQ(weights_of(rows.only(marks, 1)), (std::vector<double>{0, 6, 0, 8}));
  EXPECT_EQ(weights_of(rows.without(marks, 1)), (std::vector<double>{5, 0, 7, 0}));
  EXPECT_EQ(weights_of(rows.without(marks, 1).slice(1, 3)), (std::vector<double>{0, 7, 0}));
  EXPECT_EQ(weights_of(Rows<double>::dense(values, 1).only(marks, 2)), (std::vector<double>{0, 0, 1, 0}));
  EXPECT_THROW((void)rows.slice(0, 2).only(marks, 1), std::invalid_argument);
}

TEST(Rows, FeatureSliceSelectsConsecutiveFeatures) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  const Rows<double> dense = Rows<double>::dense(values, 3).feature_slice(1, 2);
  EXPECT_EQ(dense.dim(), 2);
  EXPECT_EQ(entries_of(dense, 1), (Entries{{0, 5}, {1, 6}}));
  EXPECT_EQ(entries_of(dense.slice(1, 1), 0), (Entries{{0, 5}, {1, 6}}));

  const std::vector<Index> offsets{0, 3};
  const std::vector<std::int32_t> columns{0, 2, 4};
  const std::vector<double> entries{8, 9, 7};
  const Rows<double> sparse = Rows<double>::sparse(offsets, columns, entries, 5);
  EXPECT_EQ(entries_of(sparse.feature_slice(2, 3), 0), (Entries{{0, 9}, {2, 7}}));
  EXPECT_EQ(entries_of(sparse.feature_slice(1, 4).feature_slice(1, 1), 0), (Entries{{0, 9}}));
  EXPECT_THROW((void)sparse.feature_slice(3, 3), std::invalid_argument);
}

TEST(Rows, InvalidSizesThrow) {
  const std::vector<double> five(5);
  const std::vector<double> two(2);
  EXPECT_THROW(Rows<double>::dense(five, 2), std::invalid_argument);
  EXPECT_THROW(Rows<double>::dense(five, 0), std::invalid_argument);
  EXPECT_THROW(Rows<double>::dense(five, 1, two), std::invalid_argument);
  EXPECT_THROW((void)Rows<double>::dense(five, 1).slice(4, 2), std::invalid_argument);
  EXPECT_THROW((void)Rows<double>::dense(five, 1).slice(-1, 2), std::invalid_argument);
}

TEST(Rows, InvalidSparseRowsThrow) {
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
  EXPECT_NO_THROW(make({0, 1, 2}, {2, 0}, 3));
  EXPECT_THROW(make({0, 2}, {1, 1}, 3), std::invalid_argument);
  EXPECT_THROW(make({0, 2}, {2, 1}, 3), std::invalid_argument);
}

TEST(RowHash, DependsOnNonzeroEntriesButNotOnOrder) {
  const auto hash_of = [](const Entries& entries) {
    RowHash hash;
    for (const auto& [j, x] : entries) hash.add(static_cast<std::uint64_t>(j), x);
    return hash.value();
  };
  EXPECT_EQ(hash_of({{0, 1.5}, {3, -2.0}}), hash_of({{3, -2.0}, {1, 0.0}, {0, 1.5}}));
  EXPECT_NE(hash_of({{0, 1.5}, {3, -2.0}}), hash_of({{0, -2.0}, {3, 1.5}}));
  EXPECT_NE(hash_of({{0, 1.5}}), hash_of({{0, 1.5}, {0, 1.5}}));
}

}  // namespace
}  // namespace dyad
