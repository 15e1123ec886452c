#include "source/lines.h"

#include <dyad/data_error.h>

#include "base/random.h"
#include "source/bytes_support.h"

namespace dyad {
namespace {

class Lines : public test::InFolder {};

TEST_F(Lines, AreWholeCountedAndComplete) {
  Random random(1, 0);
  std::string text;
  while (text.size() < 5'000'000) text += std::string(random.bits() % 200, 'x') + "\n";
  LineReader reader(write("text", text));
  LineBlock block;
  std::string all;
  std::int64_t line = 1;
  int blocks = 0;
  while (reader.next(block)) {
    EXPECT_EQ(block.first_line, line);
    EXPECT_EQ(block.text.back(), '\n');
    line += std::count(block.text.begin(), block.text.end(), '\n');
    all += block.text;
    ++blocks;
  }
  EXPECT_EQ(all, text);
  EXPECT_GT(blocks, 3);
}

TEST_F(Lines, EndInANewlineWhereTheFileDoesNot) {
  LineReader reader(write("text", "one\ntwo"));
  LineBlock block;
  std::string all;
  while (reader.next(block)) all += block.text;
  EXPECT_EQ(all, "one\ntwo\n");
  LineReader empty(write("empty", ""));
  EXPECT_FALSE(empty.next(block));
}

TEST_F(Lines, MayBeLongerThanABlock) {
  const std::string longest(5'000'000, 'y');
  LineReader reader(write("text", "short\n" + longest + "\nshort again\n"));
  LineBlock block;
  std::string all;
  while (reader.next(block)) all += block.text;
  EXPECT_EQ(all, "short\n" + longest + "\nshort again\n");
}

}  // namespace
}  // namespace dyad
