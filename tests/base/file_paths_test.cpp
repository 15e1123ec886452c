#include "base/file_paths.h"

#include <filesystem>
#include <stdexcept>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace dyad {
namespace {

class FilePaths : public test::TemporaryFolderTest {
 protected:
  static bool conflicts(const std::string& output, const std::string& input) {
    try {
      require_distinct_files({{output, "the output"}}, {{input, "the input"}});
    } catch (const std::invalid_argument&) {
      return true;
    }
    return false;
  }
};

TEST_F(FilePaths, LinksAndRelativePathsToOneFileConflict) {
  const std::string file = write("file", "content");
  std::filesystem::create_hard_link(file, path("hard"));
  std::filesystem::create_symlink("file", path("soft"));
  for (const std::string& name : {file, path("hard"), path("soft"), path("./file"),
                                  path("../") + std::filesystem::path(folder()).filename().string() + "/file"})
    EXPECT_TRUE(conflicts(name, file)) << name;
  EXPECT_FALSE(conflicts(write("other", "content"), file));
  EXPECT_FALSE(conflicts(path("none"), file));
  EXPECT_FALSE(conflicts("", file));
}

TEST_F(FilePaths, NonexistentOutputsConflictByFolderAndName) {
  std::filesystem::create_symlink("new", path("link"));
  EXPECT_THROW(require_distinct_files({{path("new"), "a"}, {path("./new"), "b"}}), std::invalid_argument);
  EXPECT_THROW(require_distinct_files({{path("new"), "a"}, {path("link"), "b"}}), std::invalid_argument);
  EXPECT_THROW(require_distinct_files({{"-", "a"}, {"-", "b"}}), std::invalid_argument);
  EXPECT_NO_THROW(require_distinct_files({{path("new"), "a"}, {path("newer"), "b"}}));
}

TEST_F(FilePaths, PipesAndDevicesDoNotConflict) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(conflicts(path("pipe"), path("pipe")));
  EXPECT_FALSE(conflicts("/dev/null", "/dev/null"));
}

TEST_F(FilePaths, StandardInputIsComparedByInode) {
  const std::string file = write("file", "content");
  const int saved = dup(STDIN_FILENO);
  const int opened = open(file.c_str(), O_RDONLY);
  dup2(opened, STDIN_FILENO);
  EXPECT_TRUE(conflicts(file, "-"));
  EXPECT_FALSE(conflicts(path("other"), "-"));
  dup2(saved, STDIN_FILENO);
  close(saved);
  close(opened);
}

TEST_F(FilePaths, LinksResolveToFilesAndDescriptors) {
  const std::string file = write("file", "content");
  std::filesystem::create_symlink("two", path("one"));
  std::filesystem::create_symlink(path("new"), path("two"));
  EXPECT_EQ(resolve_links(path("one")).path, path("new"));
  const int descriptor = open(file.c_str(), O_RDONLY);
  const std::string number = std::to_string(descriptor);
  std::filesystem::create_symlink("/proc/self/fd/" + number, path("descriptor"));
  for (const std::string& name : {"/proc/self/fd/" + number, "/dev/fd/" + number, path("descriptor")})
    EXPECT_EQ(resolve_links(name).descriptor, descriptor) << name;
  EXPECT_EQ(resolve_links("/dev/stdout").descriptor, STDOUT_FILENO);
  EXPECT_FALSE(resolve_links(file).descriptor);
  close(descriptor);
  std::filesystem::create_symlink("b", path("a"));
  std::filesystem::create_symlink("a", path("b"));
  EXPECT_THROW((void)resolve_links(path("a")), std::runtime_error);
}

}  // namespace
}  // namespace dyad
