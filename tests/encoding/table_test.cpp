#include "encoding/table.h"

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "encoding/table_encoder.h"

namespace dyad {
namespace {

using Targets = TableEncoder::Targets;
using UnknownFeatures = TableEncoder::UnknownFeatures;
using Table = std::vector<std::vector<std::string>>;

const std::string rows_csv = "rows.csv";

TableSample sample_of(const Table& rows) {
  TableSample sample{rows, {}};
  for (std::size_t i = 0; i < rows.size(); ++i) sample.lines.push_back(static_cast<std::int64_t>(i) + 2);
  return sample;
}

FeatureMap fit_map(const std::vector<std::string>& header, const Table& rows, const ColumnOptions& options,
                   Kind kind = Kind::gfm) {
  FeatureMap map;
  map.kind = kind;
  map.hash_bits = options.hash_bits;
  fit_table(map, options, header, sample_of(rows), rows_csv);
  return map;
}

RowBlock<double> encode(FeatureMap& map, const std::vector<std::string>& header, const Table& rows,
                        Targets targets = Targets::needed, UnknownFeatures unknown = UnknownFeatures::add) {
  const TableColumns columns(map, header, rows_csv, targets);
  TableEncoder encoder(map, columns, unknown, nullptr);
  EncodedRows encoded;
  std::int64_t line = 2;
  for (const auto& row : rows) {
    const std::vector<std::string_view> cells(row.begin(), row.end());
    encoder.encode(cells.data(), line++, encoded);
  }
  RowBlock<double> block;
  const Index count = std::ssize(rows);
  EXPECT_EQ(TableMerger(map).append(encoded, 0, columns, {count, std::numeric_limits<Index>::max()}, block), count);
  RowEncoder::finish(map, block);
  (void)block.view();  // validates the block
  return block;
}

double entry(const RowBlock<double>& block, Index row, Index feature) {
  double value = 0;
  block.view().for_each_entry(row, [&](Index j, double x) {
    if (j == feature) value = x;
  });
  return value;
}

TEST(FitTable, InfersColumnRoles) {
  const std::vector<std::string> header{"price", "city", "zip", "empty", "note", "y"};
  const Table rows{
      {"1.5", "Bonn", "53111", "", "x", "1"}, {"2", "Ulm", "89073", "NA", "y", "2"}, {"-3e2", "7", "1", "", "z", "4"}};
  ColumnOptions options;
  options.target = "y";
  options.categorical = {"zip"};
  options.ignored = {"note"};
  const FeatureMap map = fit_map(header, rows, options);
  ASSERT_EQ(map.columns().size(), 4U);
  EXPECT_EQ(map.columns()[0].role, Column::Role::numeric);
  EXPECT_EQ(map.columns()[1].role, Column::Role::categorical);
  EXPECT_EQ(map.columns()[2].role, Column::Role::categorical);
  EXPECT_EQ(map.columns()[3].role, Column::Role::numeric);
  EXPECT_TRUE(map.columns()[3].has_missing_indicator);
  EXPECT_FALSE(map.columns()[0].has_missing_indicator);
}

TEST(TableEncoder, EncodesNumbersIndicatorsAndWeights) {
  const std::vector<std::string> header{"city", "price", "y", "w"};
  const Table rows{{"Bonn", "1", "10", "2"}, {"Ulm", "3", "20", "0.5"}, {"Bonn", "", "30", "1"}};
  ColumnOptions options;
  options.target = "y";
  options.weight = "w";
  FeatureMap map = fit_map(header, rows, options);
  const RowBlock<double> block = encode(map, header, rows);
  ASSERT_EQ(block.dim, 4);  // price, price is missing, Bonn, Ulm
  EXPECT_NEAR(entry(block, 0, 0), -1, 1e-12);
  EXPECT_NEAR(entry(block, 1, 0), 1, 1e-12);
  EXPECT_EQ(entry(block, 2, 0), 0);
  EXPECT_EQ(entry(block, 2, 1), 1);
  EXPECT_EQ(entry(block, 0, 2), 1);
  EXPECT_EQ(entry(block, 1, 3), 1);
  EXPECT_EQ(entry(block, 2, 2), 1);
  EXPECT_EQ(block.weights, (std::vector<double>{2, 0.5, 1}));
  const Scaling& scaling = map.target.scaling;
  EXPECT_NEAR(scaling.center + scaling.scale * block.targets[1], 20, 1e-12);
}

TEST(TableEncoder, NumericTablesAreDense) {
  const std::vector<std::string> header{"a", "y", "b"};
  const Table rows{{"1", "10", ""}, {"3", "20", "4"}, {"2", "30", "8"}};
  ColumnOptions options;
  options.target = "y";
  FeatureMap map = fit_map(header, rows, options);
  const RowBlock<double> block = encode(map, header, rows);
  EXPECT_TRUE(block.is_dense);
  EXPECT_EQ(block.dim, 3);
  EXPECT_EQ(entry(block, 0, 1), 0);
  EXPECT_EQ(entry(block, 0, 2), 1);
  EXPECT_EQ(entry(block, 1, 2), 0);
}

TEST(TableEncoder, MatchesColumnsByNameAndIgnoresUnknownCategories) {
  const std::vector<std::string> header{"city", "price", "y"};
  ColumnOptions options;
  options.target = "y";
  const Table rows{{"Bonn", "1", "10"}, {"Ulm", "3", "20"}};
  FeatureMap map = fit_map(header, rows, options);
  const RowBlock<double> trained = encode(map, header, rows);
  const RowBlock<double> block = encode(map, {"extra", "price", "city"}, {{"?", "1", "Bonn"}, {"?", "3", "Jena"}},
                                        Targets::none, UnknownFeatures::ignore);
  EXPECT_EQ(block.dim, trained.dim);
  EXPECT_TRUE(block.targets.empty());
  for (Index j = 0; j < block.dim; ++j) EXPECT_EQ(entry(block, 0, j), entry(trained, 0, j));
  EXPECT_EQ(entry(block, 1, 0), entry(trained, 1, 0));
  EXPECT_EQ(block.unknown_cells.size(), 1U);
}

TEST(TableEncoder, PlacesTheRightSideAfterTheLeft) {
  const std::vector<std::string> header{"item", "user", "y"};
  ColumnOptions options;
  options.target = "y";
  options.right = {"it*"};
  const Table rows{{"tea", "ann", "1"}, {"rum", "bob", "2.5"}, {"tea", "cy", "3"}};
  FeatureMap map = fit_map(header, rows, options, Kind::bilinear);
  const RowBlock<double> block = encode(map, header, rows);
  EXPECT_EQ(block.left_dim, 3);
  EXPECT_EQ(block.dim, 5);
  EXPECT_EQ(entry(block, 0, 3), 1);  // tea
  EXPECT_EQ(entry(block, 1, 4), 1);  // rum
  EXPECT_EQ(entry(block, 2, 3), 1);
  EXPECT_EQ(entry(block, 2, 2), 1);  // cy
}

TEST(TableEncoder, AddsValuesOfCollidingHashes) {
  const std::vector<std::string> header{"a", "b", "c", "y"};
  ColumnOptions options;
  options.target = "y";
  options.categorical = {"a", "b", "c"};
  options.hash_bits = 1;
  const Table rows{{"1", "2", "3", "1"}, {"4", "5", "6", "2.5"}, {"7", "8", "9", "3"}};
  FeatureMap map = fit_map(header, rows, options);
  const RowBlock<double> block = encode(map, header, rows);
  EXPECT_EQ(block.dim, 2);
  for (Index i = 0; i < 3; ++i) EXPECT_EQ(entry(block, i, 0) + entry(block, i, 1), 3);
}

TEST(TableEncoder, ErrorsNameLocationAndExpectation) {
  const std::vector<std::string> header{"a", "b", "y", "w"};
  const Table good{{"1", "2", "3", "1"}, {"2", "3", "5", "1"}};
  ColumnOptions options;
  options.target = "y";
  options.weight = "w";
  const std::tuple<std::vector<std::string>, int, const char*> cases[] = {
      {{"spam", "2", "3", "1"}, 1, "categorical"},      {{"1", "inf", "3", "1"}, 2, "finite number"},
      {{"1", "2", "NaN", "1"}, 3, "missing"},           {{"1", "2", "3", "-1"}, 4, "weight of at least 0"},
      {{"1", "2", "3", ""}, 4, "weight of at least 0"},
  };
  for (const auto& [row, column, expected] : cases) {
    FeatureMap map = fit_map(header, good, options);
    try {
      (void)encode(map, header, {row});
      ADD_FAILURE() << expected;
    } catch (const DataError& error) {
      EXPECT_EQ(error.line(), 2);
      EXPECT_EQ(error.column(), column);
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

TEST(TableEncoder, MeasurementsAreUnscaledAndNeverMissing) {
  const std::vector<std::string> header{"a", "b", "y"};
  const Table rows{{"100", "1", "3"}, {"200", "2", "5"}};
  ColumnOptions options;
  options.target = "y";
  FeatureMap map = fit_map(header, rows, options, Kind::sensing);
  const RowBlock<double> block = encode(map, header, rows);
  EXPECT_EQ(entry(block, 1, 0), 200);
  EXPECT_THROW((void)encode(map, header, {{"", "1", "2"}}), DataError);
}

TEST(FitTable, RejectsOptionsThatNameMissingColumns) {
  const std::vector<std::string> header{"a", "b", "y"};
  const Table rows{{"1", "2", "3"}};
  const auto with = [](auto&& change) {
    ColumnOptions options;
    options.target = "y";
    change(options);
    return options;
  };
  for (const ColumnOptions& options :
       {with([](auto& o) { o.target = "z"; }), with([](auto& o) { o.target = ""; }),
        with([](auto& o) { o.categorical = {"z"}; }), with([](auto& o) { o.ignored = {"z*"}; }),
        with([](auto& o) { o.weight = "z"; }), with([](auto& o) {
          o.ignored = {"a", "b"};
        }),
        with([](auto& o) { o.categorical = {"y"}; })})
    EXPECT_THROW((void)fit_map(header, rows, options), std::invalid_argument);
  for (const std::vector<std::string>& right : {std::vector<std::string>{}, {"a", "b"}, {"z"}})
    EXPECT_THROW((void)fit_map(header, rows, with([&](auto& o) { o.right = right; }), Kind::bilinear),
                 std::invalid_argument);
  FeatureMap map = fit_map(header, rows, with([](auto&) {}));
  EXPECT_THROW(TableColumns(map, {"a", "y"}, rows_csv, Targets::needed), std::invalid_argument);
  EXPECT_THROW(TableColumns(map, {"a", "b"}, rows_csv, Targets::needed), std::invalid_argument);
  EXPECT_NO_THROW(TableColumns(map, {"a", "b"}, rows_csv, Targets::none));
}

/// Quadratic time, 100,000 names compared with 100,000 others, would take minutes.
TEST(FitTable, TakesLinearTimeInTheColumns) {
  constexpr std::size_t count = 100'000;
  std::vector<std::string> header{"y"};
  std::vector<std::string> row{"1"};
  ColumnOptions options;
  options.target = "y";
  for (std::size_t j = 0; j < count; ++j) {
    header.push_back("column " + std::to_string(j));
    row.push_back(std::to_string(j % 7));
    (j % 3 == 0 ? options.categorical : options.ignored).push_back(header.back());
    if (j % 3 == 1) options.ignored.pop_back();
  }
  const auto start = std::chrono::steady_clock::now();
  FeatureMap map = fit_map(header, {row, row}, options);
  EXPECT_EQ(encode(map, header, {row}).values.size(), (count + 2) / 3);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace dyad
