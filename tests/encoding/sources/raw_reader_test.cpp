#include <dyad/dataset.h>

#include <sys/stat.h>

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <dyad/error.h>

#include "io/row_text.h"
#include "temporary_folder.h"

namespace dyad {
namespace {

class RawReaderTest : public test::TemporaryFolderTest {
 protected:
  static std::vector<RawRows> read_all(const DataOptions& data, Index rows, std::vector<std::string> categorical = {}) {
    RawReader reader(data, std::move(categorical), rows);
    std::vector<RawRows> blocks(1);
    while (reader.next(blocks.back())) blocks.emplace_back();
    blocks.pop_back();
    return blocks;
  }
};

TEST_F(RawReaderTest, ReadsTablesAcrossBlocksAndFiles) {
  const std::string first = write("a.csv", "x,name,y\n1.5,\"a, b\",1\n,b,2\n3,NA,3\n");
  const std::string second = write("b.csv", "name,y,x\nb,4,1e3\n");
  for (const Index rows : {1, 2, 100}) {
    const auto blocks = read_all({.paths = {first, second}}, rows);
    std::vector<double> x;
    std::vector<double> y;
    std::vector<std::string> names;
    for (const RawRows& block : blocks) {
      ASSERT_EQ(block.columns.size(), 3U);
      EXPECT_LE(block.count, rows);
      EXPECT_TRUE(block.columns[1].is_categorical);
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

TEST_F(RawReaderTest, KeepsTheTextOfDeclaredCategories) {
  const std::string file = write("a.csv", "code,y\n007,1\n7,2\n");
  const auto blocks = read_all({.paths = {file}}, 10, {"co*"});
  EXPECT_EQ(blocks.front().columns[0].categories, (std::vector<std::string>{"007", "7"}));
  EXPECT_THROW(read_all({.paths = {file}}, 10, {"absent"}), std::invalid_argument);
}

TEST_F(RawReaderTest, KeepsSparseIndices) {
  const auto blocks = read_all({.paths = {write("a.svm", "1 3:0.5 7:2\n-1\n2 0:1\n")}}, 2);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].width, 8);
  EXPECT_EQ(blocks[0].offsets, (std::vector<Index>{0, 2, 2}));
  EXPECT_EQ(blocks[0].indices, (std::vector<std::int32_t>{3, 7}));
  EXPECT_EQ(blocks[0].targets, (std::vector<double>{1, -1}));
  EXPECT_EQ(blocks[1].values, (std::vector<double>{1}));
}

TEST_F(RawReaderTest, MemoryDoesNotDependOnTheHeaderOfAnArray) {
  // 2^20 rows of 2^18 columns are 2^41 bytes, more than any machine that runs this test has.
  const std::string file = write("wrong_header.npy", make_npy_header(Index{1} << 20, Index{1} << 18) + "a few bytes");
  EXPECT_THROW(read_all({.paths = {file}}, 1 << 20), DataError);
}

TEST_F(RawReaderTest, ReadsCompleteArrayBlocksInChunks) {
  constexpr Index rows = 7;
  constexpr Index columns = 200'000;
  std::vector<double> values(rows * columns);
  std::iota(values.begin(), values.end(), 0);
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  const std::string file = write("wide.npy", make_npy_header(rows, columns) + bytes);
  const std::vector<double> targets{1, 2, 3, 4, 5, 6, 7};
  bytes.assign(reinterpret_cast<const char*>(targets.data()), targets.size() * sizeof(double));
  const std::string target_file = write("targets.npy", make_npy_header(rows, 0) + bytes);
  const auto blocks = read_all({.paths = {file}, .target_paths = {target_file}}, 5);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].values, std::vector<double>(values.begin(), values.begin() + 5 * columns));
  EXPECT_EQ(blocks[1].values, std::vector<double>(values.begin() + 5 * columns, values.end()));
  EXPECT_EQ(blocks[0].targets, (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(blocks[1].count, 2);
}

TEST_F(RawReaderTest, InterruptionEndsAWaitingRead) {
  const std::string pipe = path("pipe.csv");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  RawReader reader({.paths = {pipe}}, {}, 10);
  RawRows rows;
  int polls = 0;
  EXPECT_THROW((void)reader.next(rows, [&] { return ++polls > 2; }), std::runtime_error);
}

TEST_F(RawReaderTest, AppliesTheReadLimits) {
  const DataOptions data{.paths = {write("wide.csv", "x,y\n1,2\n")}, .limits = {.max_columns = 1}};
  EXPECT_THROW(read_all(data, 2), DataError);
  EXPECT_THROW(read_all({.paths = {path("wide.csv")}, .limits = {.max_columns = 0}}, 2), std::invalid_argument);
}

TEST_F(RawReaderTest, ErrorsNameTheLine) {
  const std::string file = write("a.csv", "x,y\n1,1\n2,2\nthree,3\n");
  try {
    read_all({.paths = {file}}, 2);
    FAIL() << "text in a numeric column must be rejected";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("4"), std::string::npos) << error.what();
  }
  EXPECT_THROW(read_all({.paths = {write("b.csv", "x,y\n1\n")}}, 2), DataError);
  EXPECT_THROW(read_all({.paths = {write("c.svm", "1 2:nan\n")}}, 2), DataError);
  EXPECT_THROW(read_all({.paths = {file, write("d.csv", "x,z\n1,1\n")}}, 2), DataError)
      << "the error of the first file is reported";
  EXPECT_THROW(read_all({.paths = {write("e.csv", "x,y\n1,1\n"), path("d.csv")}}, 2), std::invalid_argument);
  EXPECT_THROW(read_all({.paths = {path("rows.txt")}}, 2), std::invalid_argument);
}

}  // namespace
}  // namespace dyad
