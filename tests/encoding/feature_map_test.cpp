#include "encoding/feature_map.h"

#include <chrono>
#include <set>

#include <gtest/gtest.h>

#include "base/stable_hash.h"

namespace dyad {
namespace {

using Side = FeatureMap::Side;

Column column(const std::string& name, Column::Role role, bool is_right = false, bool has_missing_indicator = false) {
  Column result;
  result.name = name;
  result.role = role;
  result.is_right = is_right;
  result.has_missing_indicator = has_missing_indicator;
  return result;
}

TEST(FeatureMap, AddsFeaturesForNewCategories) {
  FeatureMap map;
  map.set_columns({column("age", Column::Role::numeric, false, true), column("city", Column::Role::categorical)});
  EXPECT_EQ(map.dim(), 2);
  EXPECT_EQ(map.encode_category(1, "Bonn", true), 2);
  EXPECT_EQ(map.encode_category(1, "Ulm", true), 3);
  EXPECT_EQ(map.encode_category(1, "Bonn", true), 2);
  EXPECT_EQ(map.encode_category(1, "", true), 4);
  EXPECT_EQ(map.encode_category(1, "Jena", false), FeatureMap::unknown);
  EXPECT_EQ(map.dim(), 5);
  const char* names[] = {"age", "age is missing", "city=Bonn", "city=Ulm", "city is missing"};
  for (Index j = 0; j < 5; ++j) EXPECT_EQ(map.name(j), names[j]);
}

/// Quadratic time, 3e10 comparisons of names, would take minutes.
TEST(FeatureMap, NamesTakeLinearTime) {
  constexpr Index count = 100'000;
  std::vector<Column> columns;
  for (Index j = 0; j < count; ++j)
    columns.push_back(column("c" + std::to_string(j), Column::Role::numeric, false, j % 2 == 0));
  FeatureMap map;
  map.set_columns(std::move(columns));
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(map.dim(), count + count / 2);
  for (Index j = 0; j < count; ++j) ASSERT_EQ(map.name(j), "c" + std::to_string(j));
  for (Index j = 0; j < count; j += 2) ASSERT_EQ(map.name(count + j / 2), "c" + std::to_string(j) + " is missing");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(FeatureMap, SeparatesTheSidesOfABilinearModel) {
  FeatureMap map;
  map.kind = Kind::bilinear;
  map.set_columns({column("user", Column::Role::categorical), column("price", Column::Role::numeric, true),
                   column("item", Column::Role::categorical, true)});
  EXPECT_EQ(map.encode_category(0, "ann", true), 0);
  EXPECT_EQ(map.encode_category(2, "tea", true), 1);
  EXPECT_EQ(map.encode_category(0, "bob", true), 1);
  EXPECT_EQ(map.left_dim(), 2);
  EXPECT_EQ(map.dim(), 4);
  EXPECT_EQ(map.name(1), "user=bob");
  EXPECT_EQ(map.name(2), "price");
  EXPECT_EQ(map.name(3), "item=tea");
}

TEST(FeatureMap, NamesLibsvmFeaturesByTheirIndices) {
  FeatureMap map;
  map.layout = Layout::sparse;
  map.set_columns({});
  EXPECT_EQ(map.encode_index(7, true), (std::pair<Side, Index>{Side::left, 7}));
  EXPECT_EQ(map.dim(), 8);
  EXPECT_EQ(map.encode_index(8, false).second, FeatureMap::unknown);
  EXPECT_EQ(map.name(7), "7");

  FeatureMap sides;
  sides.layout = Layout::sparse;
  sides.kind = Kind::bilinear;
  sides.index_base = 1;
  sides.right_first = 4;
  sides.set_columns({});
  EXPECT_EQ(sides.encode_index(1, true), (std::pair<Side, Index>{Side::left, 0}));
  EXPECT_EQ(sides.encode_index(5, true), (std::pair<Side, Index>{Side::right, 1}));
  EXPECT_EQ(sides.name(0), "1");
  EXPECT_EQ(sides.name(sides.dim() - 1), "5");
}

TEST(FeatureMap, HashesToAFixedNumberOfFeatures) {
  FeatureMap map;
  map.hash_bits = 4;
  map.set_columns({column("size", Column::Role::numeric), column("a", Column::Role::categorical),
                   column("b", Column::Role::categorical)});
  EXPECT_EQ(map.dim(), 17);
  std::set<Index> features;
  for (int i = 0; i < 1000; ++i) {
    const Index feature = map.encode_category(1, std::to_string(i), true);
    EXPECT_EQ(feature, map.encode_category(1, std::to_string(i), false));
    EXPECT_GE(feature, 1);
    EXPECT_LT(feature, 17);
    features.insert(feature);
  }
  EXPECT_EQ(features.size(), 16U);
  EXPECT_EQ(map.dim(), 17);
  int same = 0;
  for (int i = 0; i < 1000; ++i)
    same += map.encode_category(1, std::to_string(i), true) == map.encode_category(2, std::to_string(i), true);
  EXPECT_LT(same, 200);
}

/// Appends a row of numbers and missing-value indicators; without zeros if the block is sparse.
void append_row(RowBlock<double>& block, const std::vector<double>& row) {
  block.dim = static_cast<Index>(row.size());
  block.lines.push_back(1);
  for (std::size_t j = 0; j < row.size(); ++j) {
    if (!block.is_dense && row[j] == 0) continue;
    block.values.push_back(row[j]);
    if (!block.is_dense) block.columns.push_back(static_cast<std::int32_t>(j));
  }
  block.offsets.push_back(static_cast<Index>(block.values.size()));
}

TEST(FeatureMap, SquaresOfTwoValuedColumnsAreLinear) {
  for (const bool dense : {false, true}) {
    FeatureMap map;
    map.set_columns({column("flag", Column::Role::numeric), column("gaps", Column::Role::numeric, false, true),
                     column("unmarked gaps", Column::Role::numeric), column("three", Column::Role::numeric),
                     column("constant", Column::Role::numeric), column("zero", Column::Role::numeric)});
    const Index indicator = map.columns()[1].missing_feature;
    RowBlock<double> block;
    block.is_dense = dense;
    append_row(block, {-0.5, 2, 3, 1, 4, 0, 0});
    append_row(block, {1.5, 3, -1, 2, 4, 1, 0});
    append_row(block, {1.5, 0, 0, 1, 4, 0, 1});
    append_row(block, {-0.5, 2, 3, 3, 4, 1, 0});
    map.update_values(block);
    std::set<Index> features;
    for (const FeatureMap::LinearSquare& square : map.linear_squares()) {
      features.insert(square.feature);
      EXPECT_EQ(square.missing_indicator, square.feature == 1 ? indicator : -1);
      const auto rows = dense ? Rows<double>::dense(block.values, 7)
                              : Rows<double>::sparse(block.offsets, block.columns, block.values, 7);
      for (Index i = 0; i < rows.count(); ++i) {
        std::vector<double> z(7);
        rows.for_each_entry(i, [&](Index j, double value) { z[static_cast<std::size_t>(j)] = value; });
        const double value = z[static_cast<std::size_t>(square.feature)];
        const double missing = square.missing_indicator < 0 ? 0 : z[static_cast<std::size_t>(square.missing_indicator)];
        EXPECT_EQ(value * value, square.slope * value + square.constant * (1 - missing));
      }
    }
    EXPECT_EQ(features, (std::set<Index>{0, 1, 5, indicator}));
    map.clear_values();
    EXPECT_EQ(map.linear_squares().size(), 1U);
  }
}

// Stored models with hashed features depend on the hash function.
TEST(FeatureMap, HashIsStableAcrossVersions) {
  EXPECT_EQ(stable_hash("", 0), 0xefd01f60ba992926U);
  EXPECT_EQ(stable_hash("user", 3), 0x280a142446edf373U);
  EXPECT_EQ(stable_hash("42", 1), 0x65b032f7b76e1580U);
}

}  // namespace
}  // namespace dyad
