#include "encoding/sources/row_stream.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "io/bytes_support.h"

namespace dyad {
namespace {

class RowStreamTest : public test::TemporaryFolderTest {
 protected:
  /// All rows as dense numbers in the units of the file, and the sizes of the blocks.
  struct Read {
    std::vector<std::vector<double>> rows;
    std::vector<double> targets;
    std::vector<Index> blocks;
    Index unknown = 0;
  };

  static Read read(FeatureMap& map, const DataOptions& data, const ColumnOptions& columns = {},
                   BlockLimits limits = {.max_rows = 3, .max_entries = 1000},
                   TableEncoder::UnknownFeatures unknown = TableEncoder::UnknownFeatures::add) {
    const auto stream = open_rows(map, {data, columns, TableEncoder::Targets::needed, unknown});
    Read read;
    RowBlock<double> block;
    for (stream->fill(block, limits); block.count() > 0; stream->fill(block, limits)) {
      read.blocks.push_back(block.count());
      read.unknown += static_cast<Index>(block.unknown_cells.size());
      const std::vector<Scaling> scalings = map.scalings();
      const Rows<double> view = block.view();
      for (Index i = 0; i < block.count(); ++i) {
        std::vector<double> row(static_cast<std::size_t>(block.dim));
        view.for_each_entry(i, [&](Index j, double x) {
          const Scaling& scaling = scalings[static_cast<std::size_t>(j)];
          row[static_cast<std::size_t>(j)] = scaling.center + scaling.scale * x;
        });
        read.rows.push_back(row);
        read.targets.push_back(map.target.scaling.center +
                               map.target.scaling.scale * block.targets[static_cast<std::size_t>(i)]);
      }
    }
    return read;
  }

  static void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-9);
  }
};

TEST_F(RowStreamTest, ReadsEqualRowsFromAllFormats) {
  const std::string csv = "a,y,b\n1,10.5,2\n3,20.5,-4\n5,30.5,6.5\n7,5,0.5\n";
  std::string tsv = csv;
  std::replace(tsv.begin(), tsv.end(), ',', '\t');
  const auto npy = [&](const std::string& shape, const std::vector<double>& numbers) {
    std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" + shape + "), }\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    return bytes + header + std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8);
  };
  const std::string features = write("x.npy", npy("4, 2", {1, 2, 3, -4, 5, 6.5, 7, 0.5}));
  const std::string targets = write("y.npy", npy("4,", {10.5, 20.5, 30.5, 5}));
  ColumnOptions columns;
  columns.target = "y";
  std::vector<Read> all;
  for (const std::string& path : {write("r.csv", csv), write("r.tsv", tsv), write("r.csv.gz", test::gzipped(csv)),
                                  write("r.tsv.zst", test::zstd_packed(tsv))}) {
    FeatureMap map;
    all.push_back(read(map, {.paths = {path}}, columns));
  }
  FeatureMap array_map;
  all.push_back(read(array_map, {.paths = {features}, .target_paths = {targets}}));
  for (const Read& one : all) {
    ASSERT_EQ(one.rows.size(), 4U);
    expect_near(one.targets, {10.5, 20.5, 30.5, 5});
    expect_near(one.rows[1], {3, -4});
    EXPECT_EQ(one.blocks, (std::vector<Index>{3, 1}));
  }
  FeatureMap libsvm_map;
  const Read libsvm =
      read(libsvm_map, {.paths = {write("r.svm", "10.5 1:1 2:2\n20.5 1:3 2:-4\n30.5 1:5 2:6.5\n5 1:7 2:0.5\n")}});
  expect_near(libsvm.rows[1], {0, 3, -4});
  expect_near(libsvm.targets, {10.5, 20.5, 30.5, 5});
}

TEST_F(RowStreamTest, ConcatenatesFilesWithReorderedColumns) {
  ColumnOptions columns;
  columns.target = "y";
  FeatureMap map;
  const Read both =
      read(map, {.paths = {write("1.csv", "a,b,y\n1,2,3\n2,3,4\n"), write("2.csv", "y,more,b,a\n5,x,4,3\n6,x,5,4\n")}},
           columns);
  ASSERT_EQ(both.rows.size(), 4U);
  expect_near(both.rows[2], {3, 4});
  expect_near(both.rows[3], {4, 5});
  expect_near(both.targets, {3, 4, 5, 6});
}

TEST_F(RowStreamTest, AddsOrIgnoresNewIndices) {
  const std::string path = write("r.svm", "1 3:1\n2 1:1 9:2\n3.5 20:1\n");
  FeatureMap map;
  const Read grown = read(map, {.paths = {path}}, {}, {.max_rows = 1, .max_entries = 100});
  EXPECT_EQ(grown.rows[0].size(), 4U);
  EXPECT_EQ(grown.rows[1].size(), 10U);
  EXPECT_EQ(grown.rows[2].size(), 21U);
  FeatureMap small;
  (void)read(small, {.paths = {write("small.svm", "1 3:1\n2 1:1\n3.5 2:1\n")}});
  const Read left_out =
      read(small, {.paths = {path}}, {}, {.max_rows = 10, .max_entries = 100}, TableEncoder::UnknownFeatures::ignore);
  EXPECT_EQ(left_out.unknown, 2);
  EXPECT_EQ(left_out.rows[1], (std::vector<double>{0, 1, 0, 0}));
}

TEST_F(RowStreamTest, HashesIndicesAndSplitsThemIntoTwoSides) {
  const std::string path = write("r.svm", "1 1:1 5:2\n2 2:1 7:1\n3.5 3:1 6:1\n");
  ColumnOptions hashed;
  hashed.hash_bits = 2;
  FeatureMap map;
  const Read folded = read(map, {.paths = {path}}, hashed);
  for (const auto& row : folded.rows) EXPECT_EQ(row.size(), 4U);
  EXPECT_EQ(folded.rows[0][0] + folded.rows[0][1] + folded.rows[0][2] + folded.rows[0][3], 3);
  ColumnOptions sides;
  sides.right = {"5-7"};
  sides.index_base = 1;
  FeatureMap bilinear;
  bilinear.kind = Kind::bilinear;
  const Read split = read(bilinear, {.paths = {path}}, sides);
  EXPECT_EQ(bilinear.left_dim(), 3);
  EXPECT_EQ(split.rows[1], (std::vector<double>{0, 1, 0, 0, 0, 1}));
}

TEST_F(RowStreamTest, RejectsInconsistentOptions) {
  const auto expect_invalid = [&](const DataOptions& data, const ColumnOptions& columns = {}, Kind kind = Kind::gfm) {
    FeatureMap map;
    map.kind = kind;
    EXPECT_THROW((void)read(map, data, columns), std::invalid_argument);
  };
  const std::string svm = write("r.svm", "1 1:1\n2 2:2\n");
  ColumnOptions with_target;
  with_target.target = "y";
  expect_invalid({.paths = {svm}}, with_target);
  expect_invalid({.paths = {svm}, .target_paths = {svm}});
  expect_invalid({.paths = {svm}}, {}, Kind::bilinear);
  expect_invalid({.paths = {}});
  expect_invalid({.paths = {"rows.xyz"}});
  expect_invalid({.paths = {"-"}});
  expect_invalid({.paths = {"-", "-"}, .format = Format::csv});
  expect_invalid({.paths = {svm, "r.csv"}});
  for (const char* range : {"x", "3", "5-3", "0-4", "-3", "3-4x"}) {
    ColumnOptions columns;
    columns.right = {range};
    expect_invalid({.paths = {svm}}, columns, Kind::bilinear);
  }
  ColumnOptions one_based;
  one_based.index_base = 1;
  FeatureMap map;
  EXPECT_THROW((void)read(map, {.paths = {write("zero.svm", "1 0:1\n")}}, one_based), DataError);
  ColumnOptions bounded;
  bounded.right = {"2-3"};
  FeatureMap sides;
  sides.kind = Kind::bilinear;
  EXPECT_THROW((void)read(sides, {.paths = {write("beyond.svm", "1 1:1 4:1\n")}}, bounded), DataError);
}

}  // namespace
}  // namespace dyad
