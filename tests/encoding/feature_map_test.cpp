#include "encoding/feature_map.h"

#include <chrono>
#include <set>

#include <gtest/gtest.h>

#include "base/stable_hash.h"

namespace dyad {
namespace {

using Side = FeatureMap::Side;

Column column(const std::string& name, Column::Role role, bool right = false, bool marks_missing = false) {
  Column result;
  result.name = name;
  result.role = role;
  result.right = right;
  result.marks_missing = marks_missing;
  return result;
}

TEST(FeatureMap, GrowsByCategoriesAndKeepsTheirNames) {
  FeatureMap map;
  map.fix({column("age", Column::Role::number, false, true), column("city", Column::Role::category)});
  EXPECT_EQ(map.dim(), 2);
  EXPECT_EQ(map.category(1, "Bonn", true), 2);
  EXPECT_EQ(map.category(1, "Ulm", true), 3);
  EXPECT_EQ(map.category(1, "Bonn", true), 2);
  EXPECT_EQ(map.category(1, "", true), 4);
  EXPECT_EQ(map.category(1, "Jena", false), FeatureMap::unknown);
  EXPECT_EQ(map.dim(), 5);
  const char* names[] = {"age", "age is missing", "city=Bonn", "city=Ulm", "city is missing"};
  for (Index j = 0; j < 5; ++j) EXPECT_EQ(map.name(j), names[j]);
}

/// 3e10 comparisons of names take minutes.
TEST(FeatureMap, NamesOfManyColumnsTakeLinearTime) {
  constexpr Index count = 100'000;
  std::vector<Column> columns;
  for (Index j = 0; j < count; ++j)
    columns.push_back(column("c" + std::to_string(j), Column::Role::number, false, j % 2 == 0));
  FeatureMap map;
  map.fix(std::move(columns));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(map.dim(), count + count / 2);
  for (Index j = 0; j < count; ++j) ASSERT_EQ(map.name(j), "c" + std::to_string(j));
  for (Index j = 0; j < count; j += 2) ASSERT_EQ(map.name(count + j / 2), "c" + std::to_string(j) + " is missing");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(FeatureMap, KeepsTheTwoSidesOfABilinearModelApart) {
  FeatureMap map;
  map.kind = Kind::bilinear;
  map.fix({column("user", Column::Role::category), column("price", Column::Role::number, true),
           column("item", Column::Role::category, true)});
  EXPECT_EQ(map.category(0, "ann", true), 0);
  EXPECT_EQ(map.category(2, "tea", true), 1);
  EXPECT_EQ(map.category(0, "bob", true), 1);
  EXPECT_EQ(map.left_dim(), 2);
  EXPECT_EQ(map.dim(), 4);
  EXPECT_EQ(map.name(1), "user=bob");
  EXPECT_EQ(map.name(2), "price");
  EXPECT_EQ(map.name(3), "item=tea");
}

TEST(FeatureMap, IndicesOfLibsvmAreTheirNames) {
  FeatureMap map;
  map.layout = Layout::sparse;
  map.fix({});
  EXPECT_EQ(map.indexed(7, true), (std::pair<Side, Index>{Side::left, 7}));
  EXPECT_EQ(map.dim(), 8);
  EXPECT_EQ(map.indexed(8, false).second, FeatureMap::unknown);
  EXPECT_EQ(map.name(7), "7");

  FeatureMap sides;
  sides.layout = Layout::sparse;
  sides.kind = Kind::bilinear;
  sides.index_base = 1;
  sides.right_first = 4;
  sides.fix({});
  EXPECT_EQ(sides.indexed(1, true), (std::pair<Side, Index>{Side::left, 0}));
  EXPECT_EQ(sides.indexed(5, true), (std::pair<Side, Index>{Side::right, 1}));
  EXPECT_EQ(sides.name(0), "1");
  EXPECT_EQ(sides.name(sides.dim() - 1), "5");
}

TEST(FeatureMap, HashesIntoABoundedNumberOfFeatures) {
  FeatureMap map;
  map.hash_bits = 4;
  map.fix(
      {column("size", Column::Role::number), column("a", Column::Role::category), column("b", Column::Role::category)});
  EXPECT_EQ(map.dim(), 17);
  std::set<Index> features;
  for (int i = 0; i < 1000; ++i) {
    const Index feature = map.category(1, std::to_string(i), true);
    EXPECT_EQ(feature, map.category(1, std::to_string(i), false));
    EXPECT_GE(feature, 1);
    EXPECT_LT(feature, 17);
    features.insert(feature);
  }
  EXPECT_EQ(features.size(), 16U);
  EXPECT_EQ(map.dim(), 17);
  int same = 0;
  for (int i = 0; i < 1000; ++i)
    same += map.category(1, std::to_string(i), true) == map.category(2, std::to_string(i), true);
  EXPECT_LT(same, 200);
}

/// A row of numbers and marks; sparse: without zeros.
void append_row(RowBlock<double>& block, const std::vector<double>& row) {
  block.dim = static_cast<Index>(row.size());
  block.lines.push_back(1);
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (!block.dense && row[j] == 0) continue;
    block.values.push_back(row[j]);
    if (!block.dense) block.columns.push_back(static_cast<std::int32_t>(j));
  }
  block.offsets.push_back(static_cast<Index>(block.values.size()));
}

TEST(FeatureMap, SquaresOfTwoValuedColumnsAreLinear) {
  for (const bool dense : {false, true}) {
    FeatureMap map;
    map.fix({column("flag", Column::Role::number), column("gaps", Column::Role::number, false, true),
             column("unmarked gaps", Column::Role::number), column("three", Column::Role::number),
             column("constant", Column::Role::number), column("zero", Column::Role::number)});
    const Index mark = map.columns()[1].missing_feature;
    RowBlock<double> block;
    block.dense = dense;
    append_row(block, {-0.5, 2, 3, 1, 4, 0, 0});
    append_row(block, {1.5, 3, -1, 2, 4, 1, 0});
    append_row(block, {1.5, 0, 0, 1, 4, 0, 1});
    append_row(block, {-0.5, 2, 3, 3, 4, 1, 0});
    map.update_values(block);
    std::set<Index> features;
    for (const FeatureMap::LinearSquare& square : map.linear_squares()) {
      features.insert(square.feature);
      EXPECT_EQ(square.mark, square.feature == 1 ? mark : -1);
      const auto rows = dense ? Rows<double>::dense(block.values, 7)
                              : Rows<double>::sparse(block.offsets, block.columns, block.values, 7);
      for (Index i = 0; i < rows.count(); ++i) {
        std::vector<double> z(7);
        rows.for_each_entry(i, [&](Index j, double value) { z[static_cast<std::size_t>(j)] = value; });
        const double own = z[static_cast<std::size_t>(square.feature)];
        const double missing = square.mark < 0 ? 0 : z[static_cast<std::size_t>(square.mark)];
        EXPECT_EQ(own * own, square.slope * own + square.constant * (1 - missing));
      }
    }
    EXPECT_EQ(features, (std::set<Index>{0, 1, 5, mark}));
    map.forget_values();
    EXPECT_EQ(map.linear_squares().size(), 1U);
  }
}

// Models with hashed features depend on it.
TEST(FeatureMap, HashIsTheSameForEver) {
  EXPECT_EQ(stable_hash("", 0), 0xefd01f60ba992926U);
  EXPECT_EQ(stable_hash("user", 3), 0x280a142446edf373U);
  EXPECT_EQ(stable_hash("42", 1), 0x65b032f7b76e1580U);
}

}  // namespace
}  // namespace dyad
