#include "base/spill_buffer.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include <gtest/gtest.h>

namespace dyad {
namespace {

TEST(SpillBuffer, ContentDoesNotDependOnTimeOfMoveToDisk) {
  const std::string folder = testing::TempDir();
  for (const int move_at : {0, 5, 300000, 700000}) {
    SpillBuffer<double> buffer;
    for (int i = 0; i < 700000; ++i) {
      if (i == move_at) buffer.move_to_disk(folder);
      buffer.append(i);
    }
    EXPECT_EQ(buffer.size(), 700000U);
    const auto all = buffer.all();
    ASSERT_EQ(all.size(), 700000U);
    for (int i = 0; i < 700000; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i);
    buffer.all()[3] = 7;
    EXPECT_EQ(buffer.all()[3], 7);
  }
}

TEST(SpillBuffer, EmptyBufferOnDiskIsEmpty) {
  SpillBuffer<int> buffer;
  buffer.move_to_disk(testing::TempDir());
  EXPECT_TRUE(buffer.all().empty());
}

TEST(PrivateFile, IsUnlinked) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "private";
  std::filesystem::create_directory(folder);
  {
    PrivateFile file(folder.string());
    file.append("abc", 3);
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    EXPECT_EQ(static_cast<const char*>(file.map())[2], 'c');
  }
  std::filesystem::remove(folder);
}

TEST(PrivateFile, ErrorContainsFolder) {
  try {
    const PrivateFile file("/nonexistent/folder");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("/nonexistent/folder"), std::string::npos);
  }
}

}  // namespace
}  // namespace dyad
