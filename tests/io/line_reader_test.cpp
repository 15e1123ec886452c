#include "io/line_reader.h"

#include <dyad/error.h>

#include "base/random.h"
#include "io/bytes_support.h"

namespace dyad {
namespace {

class LineReaderTest : public test::TemporaryFolderTest {};

TEST_F(LineReaderTest, BlocksContainAllLinesInOrder) {
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

TEST_F(LineReaderTest, AddsAMissingFinalNewline) {
  LineReader reader(write("text", "one\ntwo"));
  LineBlock block;
  std::string all;
  while (reader.next(block)) all += block.text;
  EXPECT_EQ(all, "one\ntwo\n");
  LineReader empty(write("empty", ""));
  EXPECT_FALSE(empty.next(block));
}

TEST_F(LineReaderTest, AcceptsLinesLongerThanTheInitialBuffer) {
  const std::string long_line(5'000'000, 'y');
  LineReader reader(write("text", "short\n" + long_line + "\nshort again\n"));
  LineBlock block;
  std::string all;
  while (reader.next(block)) all += block.text;
  EXPECT_EQ(all, "short\n" + long_line + "\nshort again\n");
}

/// True if all lines of the file are accepted with this limit. Expects an error at line 3 otherwise.
bool accepts(const std::string& path, Index max_line_bytes, char separator = '\0') {
  LineReader reader(Input(path, {}, {.max_line_bytes = max_line_bytes}), separator);
  LineBlock block;
  try {
    while (reader.next(block)) continue;
  } catch (const DataError& error) {
    EXPECT_EQ(error.line(), 3);
    EXPECT_NE(std::string(error.what()).find("ReadLimits::max_line_bytes"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(std::to_string(max_line_bytes)), std::string::npos);
    return false;
  }
  return true;
}

TEST_F(LineReaderTest, RejectsLinesAboveTheLimit) {
  for (const std::size_t size : {std::size_t{10}, std::size_t{300'000}, std::size_t{3'000'000}})
    for (const char* end : {"\n", "", "\nmore\n"}) {
      const std::string file = write("text", "one\ntwo\n" + std::string(size, 'y') + end);
      EXPECT_TRUE(accepts(file, static_cast<Index>(size))) << size;
      EXPECT_FALSE(accepts(file, static_cast<Index>(size) - 1)) << size;
    }
  const std::string quoted = write("quoted", "a\nb\n\"" + std::string(20, '\n') + "\"\n");
  EXPECT_TRUE(accepts(quoted, 22, ','));
  EXPECT_FALSE(accepts(quoted, 21, ','));
}

/// The text of a block stays valid in the buffer that take_buffer() returns, for any size of the blocks.
TEST_F(LineReaderTest, PassesOnItsBuffer) {
  const std::string text = "\xef\xbb\xbf\"a\nb\",c\n\n" + std::string(100, 'y') + "\n\"\"\"\n\"\nlast";
  for (const auto block_bytes : std::initializer_list<std::size_t>{1, 2, 3, 7, 50, 1000}) {
    LineReader reader(Input(write("text", text), {}, {}, block_bytes), ',');
    std::vector<std::vector<char>> buffers;
    std::vector<LineBlock> blocks(1);
    for (std::vector<char> buffer(5, 'z'); reader.next(blocks.back()); blocks.emplace_back()) {
      reader.take_buffer(buffer);
      buffers.push_back(std::move(buffer));
      buffer.clear();
    }
    std::string all;
    std::int64_t line = 1;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(blocks[i].first_line, line);
      EXPECT_GE(blocks[i].text.data(), buffers[i].data());
      EXPECT_LE(blocks[i].text.data() + blocks[i].text.size(), buffers[i].data() + buffers[i].size());
      line += std::count(blocks[i].text.begin(), blocks[i].text.end(), '\n');
      all += blocks[i].text;
    }
    EXPECT_EQ(all, text.substr(3) + "\n");
  }
}

}  // namespace
}  // namespace dyad
