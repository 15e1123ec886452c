#include "solvers/sampling/feature_columns.h"

#include <set>

#include <gtest/gtest.h>

#include "solvers/sampling/colour_classes.h"
#include "solvers/sampling/feature_groups.h"
#include "solvers/sampling/sampled_rows.h"

namespace dyad {
namespace {

template <typename Scalar>
FeatureColumns columns_of(const std::vector<Rows<Scalar>>& views) {
  return FeatureColumns(std::span<const Rows<Scalar>>(views));
}

TEST(FeatureColumns, ContainTheEntriesOfAllViews) {
  const auto rows = test::random_rows<double>(40, 7, 1, 0.3);
  for (const Rows<double>& view : {rows.sparse(), rows.dense()}) {
    const FeatureColumns columns = columns_of<double>({view.slice(0, 15), view.slice(15, 25)});
    ASSERT_EQ(columns.row_count(), 40);
    Index entries = 0;
    for (Index j = 0; j < 7; ++j) {
      const FeatureColumns::Column column = columns.column(j);
      for (Index e = 0; e < column.count(); ++e, ++entries) {
        const Index source = columns.source_rows()[static_cast<std::size_t>(column.row(e))];
        EXPECT_FLOAT_EQ(column.value(e), static_cast<float>(rows.X(source, j)));
        EXPECT_LT(e > 0 ? column.row(e - 1) : -1, column.row(e));
      }
    }
    EXPECT_EQ(entries, static_cast<Index>(rows.values.size()));
    for (std::size_t i = 0; i < 40; ++i)
      EXPECT_FLOAT_EQ(columns.targets()[i],
                      static_cast<float>(rows.targets[static_cast<std::size_t>(columns.source_rows()[i])]));
  }
}

TEST(FeatureColumns, StoreNoValuesOfIndicators) {
  const auto rows = test::grouped_rows(20, 6, 2, true, 1);
  const FeatureColumns columns = columns_of<double>({rows.sparse()});
  EXPECT_EQ(columns.column(0).values, nullptr);
  EXPECT_EQ(columns.column(0).value(0), 1);
}

TEST(ColourClasses, ShareNoRowAndContainAllFeaturesThatOccur) {
  const auto rows = test::random_rows<double>(60, 20, 2, 0.1);
  const FeatureColumns columns = columns_of<double>({rows.sparse()});
  const ColourClasses colours(columns, features_by_count(columns));
  std::set<std::int32_t> all;
  for (const auto& features : colours.classes()) {
    std::set<std::int32_t> seen;
    for (const std::int32_t j : features) {
      EXPECT_TRUE(all.insert(j).second);
      for (const std::int32_t row : columns.column(j).rows) EXPECT_TRUE(seen.insert(row).second);
    }
  }
  for (std::int32_t j = 0; j < 20; ++j) EXPECT_EQ(all.contains(j), columns.column(j).count() > 0);
}

TEST(FeatureGroups, AreDiscoveredFromCooccurrence) {
  const auto rows = test::grouped_rows(2000, 30, 3, true, 3);
  const FeatureColumns columns = columns_of<double>({rows.sparse()});
  const FeatureGroups groups = FeatureGroups::discover(columns, 1);
  EXPECT_EQ(groups.count, 4);  // and that of features without rows
  for (std::size_t j = 0; j < 30; ++j) EXPECT_EQ(groups.group_of[j], groups.group_of[j / 10 * 10]);
  EXPECT_EQ(groups.merged, std::vector<std::int32_t>{3});
}

TEST(FeatureGroups, AreOneGroupIfFeaturesFormNoColumns) {
  const auto rows = test::random_rows<double>(400, 60, 4, 0.05);
  const FeatureColumns columns = columns_of<double>({rows.sparse()});
  EXPECT_EQ(FeatureGroups::discover(columns, 2).count, 2);
}

TEST(FeatureGroups, MergeGroupsWithOneFeature) {
  const auto rows = test::random_rows<double>(30, 5, 5, 0.8);
  const FeatureColumns columns = columns_of<double>({rows.sparse()});
  const FeatureGroups groups = FeatureGroups::of(PriorGroups(std::vector<std::string>(5), {0, 1, 1, 2, 4}), columns);
  EXPECT_EQ(groups.group_of, (std::vector<std::int32_t>{0, 1, 1, 0, 0}));
  EXPECT_EQ(groups.merged, (std::vector<std::int32_t>{0, 1, 0, 2, 0}));
  EXPECT_EQ(groups.count, 3);
}

}  // namespace
}  // namespace dyad
