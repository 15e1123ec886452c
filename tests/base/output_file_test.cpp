#include "base/output_file.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dyad {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string content() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] auto file_count() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  const std::string folder =
      testing::TempDir() + "output_file_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = folder + "/file";
};

TEST_F(OutputFileTest, TargetAppearsOnCommit) {
  OutputFile file(path);
  file.write("one ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.write("two");
  file.commit();
  EXPECT_EQ(content(), "one two");
  EXPECT_EQ(file_count(), 1);
}

/// A killed process then leaves no temporary file.
TEST_F(OutputFileTest, TemporaryFileHasNoName) {
  OutputFile file(path);
  file.write("half");
  if (file_count() > 0) GTEST_SKIP() << "this file system does not support unnamed files";
  OutputFile other(path);
  other.write("whole");
  other.commit();
  EXPECT_EQ(file_count(), 1);
  EXPECT_EQ(content(), "whole");
}

TEST_F(OutputFileTest, TargetIsUnchangedWithoutCommit) {
  std::ofstream(path) << "old";
  {
    OutputFile file(path);
    file.write("half");
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(file_count(), 1);
  OutputFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(content(), "new");
}

TEST_F(OutputFileTest, FollowsLinkToNonexistentFile) {
  std::filesystem::create_symlink("new", path);
  OutputFile file(path);
  file.write("content");
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_FALSE(std::filesystem::is_symlink(folder + "/new"));
  EXPECT_EQ(content(), "content");
}

TEST_F(OutputFileTest, WritesToOpenDescriptorDirectly) {
  std::ofstream(path) << "old ";
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND);
  struct stat before {};
  ASSERT_EQ(fstat(descriptor, &before), 0);
  OutputFile file("/dev/fd/" + std::to_string(descriptor));
  EXPECT_TRUE(file.is_direct());
  file.write("new");
  file.commit();
  close(descriptor);
  struct stat after {};
  ASSERT_EQ(stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_EQ(content(), "old new");
}

TEST_F(OutputFileTest, KeepsModeOfReplacedFile) {
  std::ofstream(path) << "old";
  for (const mode_t mode : {0604U, 0640U, 0755U}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    OutputFile file(path);
    file.write("new");
    file.commit();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, mode);
  }
}

TEST_F(OutputFileTest, ErrorContainsPathAndReason) {
  try {
    OutputFile file(folder + "/missing/file");
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("missing/file"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

}  // namespace
}  // namespace dyad
