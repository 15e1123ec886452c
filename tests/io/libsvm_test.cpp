#include "io/libsvm.h"

#include <gtest/gtest.h>

#include <dyad/error.h>

namespace dyad {
namespace {

RowBlock<double> parse(const std::string& text, std::int64_t first_line = 1) {
  RowBlock<double> block;
  LineBlock lines{text, first_line};
  parse_libsvm(lines, "data.svm", {.max_rows = 100, .max_entries = 100}, block);
  return block;
}

TEST(ParseLibsvm, ReadsRows) {
  const auto block =
      parse("1 1:0.5 3:-2e3\n-1\n\n# nothing\n+2.5 0:+1 7:1e-400 # a comment 9:9\r\n0\t2147483646:4  \n");
  EXPECT_EQ(block.targets, (std::vector<double>{1, -1, 2.5, 0}));
  EXPECT_EQ(block.offsets, (std::vector<Index>{0, 2, 2, 4, 5}));
  EXPECT_EQ(block.columns, (std::vector<std::int32_t>{1, 3, 0, 7, 2147483646}));
  EXPECT_EQ(block.values, (std::vector<double>{0.5, -2000, 1, 0, 4}));
}

TEST(ParseLibsvm, ContinuesAfterAFullBlock) {
  const std::string text = "1 1:1\n# no row\n2 1:2 2:3\n3\n4 7:1\n";
  const RowBlock<double> whole = parse(text);
  for (const BlockLimits limits :
       {BlockLimits{.max_rows = 1, .max_entries = 100}, {.max_rows = 100, .max_entries = 2}}) {
    LineBlock lines{text, 1};
    std::vector<double> targets;
    std::vector<std::int64_t> row_lines;
    for (int blocks = 0; !lines.text.empty(); ++blocks) {
      RowBlock<double> block;
      parse_libsvm(lines, "data.svm", limits, block);
      EXPECT_LE(block.count(), limits.max_rows);
      targets.insert(targets.end(), block.targets.begin(), block.targets.end());
      row_lines.insert(row_lines.end(), block.lines.begin(), block.lines.end());
    }
    EXPECT_EQ(targets, whole.targets);
    EXPECT_EQ(row_lines, (std::vector<std::int64_t>{1, 3, 4, 5}));
  }
}

TEST(ParseLibsvm, ErrorsNameLocationAndExpectation) {
  const std::tuple<const char*, int, int, const char*> cases[] = {
      {"1 1:2\nspam 1:2\n", 2, 1, "number as the target, got 'spam'"},
      {"1 1:x\n", 1, 5, "number after the colon, got 'x'"},
      {"1 1:\n", 1, 5, "got the end of the line"},
      {"1 one:2\n", 1, 3, "index:value"},
      {"1 1\n", 1, 3, "index:value"},
      {"1 1 2:3\n", 1, 3, "index:value"},
      {"1 2:1 2:1\n", 1, 7, "above 2"},
      {"1 2:1 1:1\n", 1, 7, "must rise"},
      {"1 -1:1\n", 1, 3, "at least 0"},
      {"1 2147483647:1\n", 1, 3, "below 2^31"},
      {"1 99999999999999999999:1\n", 1, 3, "below 2^31"},
      {"1 1:nan\n", 1, 5, "finite"},
      {"1 1:1e999\n", 1, 5, "finite"},
      {"1 1:1 2:-1e71\n", 1, 9, "up to 1e70"},
      {"inf 1:1\n", 1, 1, "finite"},
      {"1 1:2x\n", 1, 6, "blank"},
      {"1,1:2\n", 1, 2, "blank"},
  };
  for (const auto& [text, line, column, expected] : cases) {
    try {
      (void)parse(text, 100);
      ADD_FAILURE() << text;
    } catch (const DataError& error) {
      EXPECT_EQ(error.line(), line + 99) << text;
      EXPECT_EQ(error.column(), column) << text;
      EXPECT_EQ(error.file(), "data.svm");
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace dyad
