#include "base/output_file.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gtest/gtest.h>

namespace dyad {
namespace {

class OutputFileIn : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string content() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] auto files() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }
  const std::string folder =
      testing::TempDir() + "output_file_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path = folder + "/file";
};

TEST_F(OutputFileIn, AppearsWhenItIsComplete) {
  OutputFile file(path);
  file.write("one ");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.write("two");
  file.commit();
  EXPECT_EQ(content(), "one two");
  EXPECT_EQ(files(), 1);
}

/// Not even under another name, so that a killed process leaves nothing behind.
TEST_F(OutputFileIn, HasNoNameUntilThen) {
  OutputFile file(path);
  file.write("half");
  if (files() > 0) GTEST_SKIP() << "this file system has no files without a name";
  OutputFile other(path);
  other.write("whole");
  other.commit();
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(content(), "whole");
}

TEST_F(OutputFileIn, LeavesWhatWasThereUntilThen) {
  std::ofstream(path) << "old";
  {
    OutputFile file(path);
    file.write("half");
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(files(), 1);
  OutputFile file(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(content(), "new");
}

TEST_F(OutputFileIn, SaysWhatCannotBeWritten) {
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
