#include "io/csv.h"

#include <dyad/data_error.h>

#include "io/bytes_support.h"

namespace dyad {
namespace {

class Csv : public test::InFolder {
 protected:
  using Table = std::vector<std::vector<std::string>>;

  [[nodiscard]] Table table(const std::string& text, char separator = ',') const {
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

  [[nodiscard]] std::string message(const std::string& text) const {
    try {
      (void)table(text);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
};

TEST_F(Csv, HasALimitOfColumns) {
  const std::string file = write("wide.csv", "a,b,c\n1,2,3\n");
  EXPECT_EQ(CsvReader(Input(file, {}, {.max_columns = 3}), ',').names().size(), 3U);
  try {
    const CsvReader reader(Input(file, {}, {.max_columns = 2}), ',');
    FAIL() << "three columns, with a limit of two";
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 1);
    for (const char* part : {"3 columns", "max_columns = 2", "--max-columns"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(Csv, CellsBeyondTheHeaderAreNotKept) {
  CsvReader reader(write("long.csv", "a\n1\n" + std::string(1'000'000, ',') + "\n"), ',');
  CsvBlock block;
  const auto read_all = [&] {
    while (reader.next(block)) continue;
  };
  EXPECT_THROW(read_all(), DataError);
  EXPECT_LT(block.cells.capacity(), 100U);
  EXPECT_NE(message("a\n1\n2,\"3\",4\n").find("got 3"), std::string::npos);
}

TEST_F(Csv, ReadsCellsAsTheyAreMeant) {
  const Table expected{{"a", "b", "c"}, {"1", "", "x y"}, {"2", "3", ""}};
  EXPECT_EQ(table("a,b,c\n1,,x y\n2,3,\n"), expected);
  EXPECT_EQ(table("a,b,c\r\n1,,x y\r\n2,3,"), expected);
  EXPECT_EQ(table("a\tb\tc\n1\t\tx y\n2\t3\t\n", '\t'), expected);
  EXPECT_EQ(table("\xef\xbb\xbf"
                  "a,b,c\n\n1,,x y\n\r\n2,3,\n\n"),
            expected);
  EXPECT_EQ(table("a,b,c\n"), (Table{{"a", "b", "c"}}));
}

TEST_F(Csv, TakesQuotesOff) {
  const Table expected{{"a", "b, b"}, {"say \"hi\"", "two\nlines"}, {"", "\""}, {"plain \"inside\"", "end"}};
  EXPECT_EQ(table("a,\"b, b\"\n\"say \"\"hi\"\"\",\"two\nlines\"\n\"\",\"\"\"\"\nplain \"inside\",end\n"), expected);
  EXPECT_EQ(table("\"a\"\r\n\"1\"\r\n"), (Table{{"a"}, {"1"}}));
}

TEST_F(Csv, QuotedNewlinesMayStandAnywhereInALongFile) {
  std::string text = "a,b\n";
  Table expected{{"a", "b"}};
  for (int i = 0; text.size() < 4'000'000; ++i) {
    const std::string number = std::to_string(i);
    std::string cell = i % 7 == 0 ? "x\ny" : "z";
    cell += number;
    text.append("\"").append(cell).append("\",").append(number).append("\n");
    expected.push_back({cell, number});
  }
  EXPECT_EQ(table(text), expected);
}

TEST_F(Csv, LinesAreThoseOfTheFile) {
  CsvReader reader(write("data.csv", "a\n1\n\n\"x\ny\"\n2\n"), ',');
  CsvBlock block;
  ASSERT_TRUE(reader.next(block));
  EXPECT_EQ(block.lines, (std::vector<std::int64_t>{2, 4, 6}));
}

TEST_F(Csv, SaysWhereAndWhatWasExpected) {
  const auto says = [&](const std::string& text, const std::string& expected) {
    EXPECT_NE(message(text).find(expected), std::string::npos) << message(text);
  };
  says("", "expected a header");
  says("a,b\n1,2\n1,2,3\n", "line 3: expected 2 cells, as in the header, got 3");
  says("a,b\n1\n", "line 2: expected 2 cells, as in the header, got 1");
  says("a,b,a\n1,2,3\n", "line 1, column 3: the column name 'a' occurs twice");
  says("a,b\n\"1,2\n3,4\n", "line 2: a quote is opened and never closed");
  says("a,b\n\"1\"x,2\n", "line 2: expected a separator");
}

TEST_F(Csv, MissingCells) {
  for (const char* cell : {"", "NA", "NaN", "nan"}) EXPECT_TRUE(is_missing(cell)) << cell;
  for (const char* cell : {" ", "0", "NAN-1", "inf", "na"}) EXPECT_FALSE(is_missing(cell)) << cell;
}

}  // namespace
}  // namespace dyad
