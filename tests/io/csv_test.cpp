#include "io/csv.h"

#include <dyad/error.h>

#include "io/bytes_support.h"

namespace dyad {
namespace {

class CsvReaderTest : public test::TemporaryFolderTest {
 protected:
  using Table = std::vector<std::vector<std::string>>;

  [[nodiscard]] Table read_table(const std::string& text, char separator = ',') const {
    CsvReader reader(write("data.csv", text), separator);
    Table rows{reader.names()};
    CsvBlock block;
    while (reader.next(block))
      for (std::size_t row = 0; row < block.rows(); ++row) {
        rows.emplace_back();
        for (std::size_t column = 0; column < block.columns; ++column)
          rows.back().emplace_back(block.cell(row, column));
      }
    return rows;
  }

  [[nodiscard]] std::string error_message(const std::string& text) const {
    try {
      (void)read_table(text);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
};

TEST_F(CsvReaderTest, LimitsTheNumberOfColumns) {
  const std::string file = write("wide.csv", "a,b,c\n1,2,3\n");
  EXPECT_EQ(CsvReader(Input(file, {}, {.max_columns = 3}), ',').names().size(), 3U);
  try {
    const CsvReader reader(Input(file, {}, {.max_columns = 2}), ',');
    FAIL() << "three columns, with a limit of two";
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 1);
    for (const char* expected : {"3 columns", "ReadLimits::max_columns = 2", "raise the limit"})
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
  }
}

TEST_F(CsvReaderTest, DiscardsCellsBeyondTheHeader) {
  CsvReader reader(write("long.csv", "a\n1\n" + std::string(1'000'000, ',') + "\n"), ',');
  CsvBlock block;
  const auto read_all = [&] {
    while (reader.next(block)) continue;
  };
  EXPECT_THROW(read_all(), DataError);
  EXPECT_LT(block.cells.capacity(), 100U);
  EXPECT_NE(error_message("a\n1\n2,\"3\",4\n").find("got 3"), std::string::npos);
}

TEST_F(CsvReaderTest, ReadsSeparatorsLineEndsAndEmptyLines) {
  const Table expected{{"a", "b", "c"}, {"1", "", "x y"}, {"2", "3", ""}};
  EXPECT_EQ(read_table("a,b,c\n1,,x y\n2,3,\n"), expected);
  EXPECT_EQ(read_table("a,b,c\r\n1,,x y\r\n2,3,"), expected);
  EXPECT_EQ(read_table("a\tb\tc\n1\t\tx y\n2\t3\t\n", '\t'), expected);
  EXPECT_EQ(read_table("\xef\xbb\xbf"
                       "a,b,c\n\n1,,x y\n\r\n2,3,\n\n"),
            expected);
  EXPECT_EQ(read_table("a,b,c\n"), (Table{{"a", "b", "c"}}));
}

TEST_F(CsvReaderTest, RemovesQuotes) {
  const Table expected{{"a", "b, b"}, {"say \"hi\"", "two\nlines"}, {"", "\""}, {"plain \"inside\"", "end"}};
  EXPECT_EQ(read_table("a,\"b, b\"\n\"say \"\"hi\"\"\",\"two\nlines\"\n\"\",\"\"\"\"\nplain \"inside\",end\n"),
            expected);
  EXPECT_EQ(read_table("\"a\"\r\n\"1\"\r\n"), (Table{{"a"}, {"1"}}));
}

TEST_F(CsvReaderTest, AcceptsQuotedNewlinesAcrossBlocks) {
  std::string text = "a,b\n";
  Table expected{{"a", "b"}};
  for (int i = 0; text.size() < 4'000'000; ++i) {
    const std::string number = std::to_string(i);
    std::string cell = i % 7 == 0 ? "x\ny" : "z";
    cell += number;
    text.append("\"").append(cell).append("\",").append(number).append("\n");
    expected.push_back({cell, number});
  }
  EXPECT_EQ(read_table(text), expected);
}

TEST_F(CsvReaderTest, ReportsLineNumbersOfTheFile) {
  CsvReader reader(write("data.csv", "a\n1\n\n\"x\ny\"\n2\n"), ',');
  CsvBlock block;
  ASSERT_TRUE(reader.next(block));
  EXPECT_EQ(block.lines, (std::vector<std::int64_t>{2, 4, 6}));
}

TEST_F(CsvReaderTest, ErrorsNameLocationAndExpectation) {
  const auto expect_message = [&](const std::string& text, const std::string& expected) {
    EXPECT_NE(error_message(text).find(expected), std::string::npos) << error_message(text);
  };
  expect_message("", "expected a header");
  expect_message("a,b\n1,2\n1,2,3\n", "line 3: expected 2 cells, as in the header, got 3");
  expect_message("a,b\n1\n", "line 2: expected 2 cells, as in the header, got 1");
  expect_message("a,b,a\n1,2,3\n", "line 1, column 3: the column name 'a' occurs twice");
  expect_message("a,b\n\"1,2\n3,4\n", "line 2: a quote is opened and never closed");
  expect_message("a,b\n\"1\"x,2\n", "line 2: expected a separator");
}

TEST_F(CsvReaderTest, RecognizesMissingCells) {
  for (const char* cell : {"", "NA", "NaN", "nan"}) EXPECT_TRUE(is_missing(cell)) << cell;
  for (const char* cell : {" ", "0", "NAN-1", "inf", "na"}) EXPECT_FALSE(is_missing(cell)) << cell;
}

}  // namespace
}  // namespace dyad
