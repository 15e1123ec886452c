#include <dyad/raw_rows.h>

#include <cmath>

#include <gtest/gtest.h>

#include <dyad/data_error.h>

#include "in_folder.h"

namespace dyad {
namespace {

class RawReaderTest : public test::InFolder {
 protected:
  static std::vector<RawRows> all(const DataOptions& data, Index rows, std::vector<std::string> categorical = {}) {
    RawReader reader(data, std::move(categorical), rows);
    std::vector<RawRows> blocks(1);
    while (reader.next(blocks.back())) blocks.emplace_back();
    blocks.pop_back();
    return blocks;
  }
};

TEST_F(RawReaderTest, TablesKeepNumbersGapsAndNamesAcrossBlocksAndFiles) {
  const std::string first = write("a.csv", "x,name,y\n1.5,\"a, b\",1\n,b,2\n3,NA,3\n");
  const std::string second = write("b.csv", "name,y,x\nb,4,1e3\n");
  for (const Index rows : {1, 2, 100}) {
    const auto blocks = all({.paths = {first, second}}, rows);
    std::vector<double> x;
    std::vector<double> y;
    std::vector<std::string> names;
    for (const RawRows& block : blocks) {
      ASSERT_EQ(block.columns.size(), 3U);
      EXPECT_LE(block.count, rows);
      EXPECT_TRUE(block.columns[1].is_category);
      x.insert(x.end(), block.columns[0].numbers.begin(), block.columns[0].numbers.end());
      y.insert(y.end(), block.columns[2].numbers.begin(), block.columns[2].numbers.end());
      for (const std::int32_t code : block.columns[1].codes)
        names.push_back(code < 0 ? "" : block.columns[1].categories[static_cast<std::size_t>(code)]);
    }
    ASSERT_EQ(x.size(), 4U);
    EXPECT_EQ(x[0], 1.5);
    EXPECT_TRUE(std::isnan(x[1]));
    EXPECT_EQ(x[3], 1000);
    EXPECT_EQ(y, (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(names, (std::vector<std::string>{"a, b", "b", "", "b"}));
  }
}

TEST_F(RawReaderTest, NumbersThatAreNamesStayText) {
  const std::string file = write("a.csv", "code,y\n007,1\n7,2\n");
  const auto blocks = all({.paths = {file}}, 10, {"co*"});
  EXPECT_EQ(blocks.front().columns[0].categories, (std::vector<std::string>{"007", "7"}));
  EXPECT_THROW(all({.paths = {file}}, 10, {"nobody"}), std::invalid_argument);
}

TEST_F(RawReaderTest, SparseRowsKeepTheirIndices) {
  const auto blocks = all({.paths = {write("a.svm", "1 3:0.5 7:2\n-1\n2 0:1\n")}}, 2);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].width, 8);
  EXPECT_EQ(blocks[0].offsets, (std::vector<Index>{0, 2, 2}));
  EXPECT_EQ(blocks[0].indices, (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(blocks[0].targets, (std::vector<double>{1, -1}));
  EXPECT_EQ(blocks[1].values, (std::vector<double>{1}));
}

TEST_F(RawReaderTest, BadRowsAreRefusedWithTheirLine) {
  const std::string file = write("a.csv", "x,y\n1,1\n2,2\nthree,3\n");
  try {
    all({.paths = {file}}, 2);
    FAIL() << "a word among numbers";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("4"), std::string::npos) << error.what();
  }
  EXPECT_THROW(all({.paths = {write("b.csv", "x,y\n1\n")}}, 2), DataError);
  EXPECT_THROW(all({.paths = {write("c.svm", "1 2:nan\n")}}, 2), DataError);
  EXPECT_THROW(all({.paths = {file, write("d.csv", "x,z\n1,1\n")}}, 2), DataError) << "the word comes first";
  EXPECT_THROW(all({.paths = {write("e.csv", "x,y\n1,1\n"), path("d.csv")}}, 2), std::invalid_argument);
  EXPECT_THROW(all({.paths = {path("rows.txt")}}, 2), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
