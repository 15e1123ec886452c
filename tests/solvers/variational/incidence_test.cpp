#include "solvers/variational/incidence.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support.h"

namespace dyad {
namespace {

TEST(Incidence, EntriesByRowEqualEntriesByFeature) {
  const auto rows = test::random_rows<double>(200, 15, 1, 0.2);
  const Incidence<double> incidence(rows.sparse());
  std::multiset<std::tuple<Index, Index, double>> by_row;
  std::multiset<std::tuple<Index, Index, double>> by_feature;
  for (Index i = 0; i < incidence.count; ++i)
    for (Index e = incidence.first_entry(i); e < incidence.first_entry(i + 1); ++e)
      by_row.emplace(i, incidence.row_features[static_cast<std::size_t>(e)],
                     incidence.row_values[static_cast<std::size_t>(e)]);
  for (Index j = 0; j < 15; ++j)
    for (Index e = 0; e < incidence.occurrence_count(j); ++e)
      by_feature.emplace(incidence.row(incidence.occurrences(j), e), j, incidence.value(incidence.occurrences(j), e));
  EXPECT_EQ(by_row, by_feature);
  EXPECT_EQ(by_row.size(), rows.values.size());
  EXPECT_TRUE(incidence.has_long_rows);
}

TEST(Incidence, ColorClassesPartitionFeaturesThatShareNoRow) {
  for (const double density : {0.02, 0.1, 0.6}) {
    const auto rows = test::random_rows<double>(300, 200, 2, density);
    const Incidence<double> incidence(rows.sparse());
    std::set<Index> seen;
    for (const auto& color_class : incidence.color_classes) {
      Vector<double> in_row = Vector<double>::Zero(300);
      for (const std::int32_t j : color_class) {
        EXPECT_TRUE(seen.insert(j).second);
        for (Index i = 0; i < 300; ++i) in_row[i] += rows.X(i, j) != 0 ? 1 : 0;
      }
      EXPECT_LE(in_row.maxCoeff(), 1);
    }
    for (Index j = 0; j < 200; ++j) EXPECT_EQ(seen.count(j) > 0, rows.X.col(j).squaredNorm() > 0);
  }
}

TEST(Incidence, PartnerIsTheOtherFeatureOfTheRow) {
  RowMajorMatrix<double> X = RowMajorMatrix<double>::Zero(4, 3);
  X(0, 0) = 1;
  X(0, 2) = 2;
  X(1, 1) = 3;
  X(3, 1) = 4;
  X(3, 2) = 5;
  const test::OwnedRows<double> rows(X, {1, 2, 3, 4});
  const Incidence<double> incidence(rows.sparse());
  EXPECT_FALSE(incidence.has_long_rows);
  EXPECT_EQ(incidence.count, 4);
  std::vector<std::pair<Index, double>> partners;
  for (Index j = 0; j < 3; ++j)
    for (Index e = 0; e < incidence.occurrence_count(j); ++e) {
      const auto partner = incidence.partner(incidence.occurrences(j), e, incidence.row(incidence.occurrences(j), e));
      partners.emplace_back(partner.feature, partner.value);
    }
  // A row without another feature has the partner 3 (the number of features) with value 0.
  EXPECT_EQ(partners, (std::vector<std::pair<Index, double>>{{2, 2}, {3, 0}, {2, 5}, {0, 1}, {1, 4}}));
}

/// row(occurrences, e, 3) is the row that is stored three places after occurrence e, or 50 (the number of rows) beyond
/// the end.
TEST(Incidence, RowAheadContinuesWithTheNextFeature) {
  const auto rows = test::random_rows<double>(50, 6, 3, 0.3);
  const Incidence<double> incidence(rows.sparse());
  std::vector<Index> listed;
  for (Index j = 0; j < 6; ++j)
    for (Index e = 0; e < incidence.occurrences(j).listed_count; ++e)
      listed.push_back(incidence.row(incidence.occurrences(j), e));
  std::size_t place = 0;
  for (Index j = 0; j < 6; ++j) {
    const auto of = incidence.occurrences(j);
    for (Index e = 0; e < of.count; ++e)
      if (of.is_first_entry(e)) {
        EXPECT_EQ(incidence.row(of, e, 3), std::min<Index>(50, incidence.row(of, e) + 3));
      } else {
        EXPECT_EQ(incidence.row(of, e, 3), place + 3 < listed.size() ? listed[place + 3] : 50);
        ++place;
      }
  }
}

}  // namespace
}  // namespace dyad
