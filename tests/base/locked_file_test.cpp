#include "base/locked_file.h"

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace dyad {
namespace {

class LockedFileTest : public test::TemporaryFolderTest {};

TEST_F(LockedFileTest, ConcurrentLockThrowsWithProcessId) {
  const std::string file = write("file", "old");
  std::optional<LockedFile> first(file);
  try {
    const LockedFile second(file);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(getpid())), std::string::npos) << error.what();
  }
  first.reset();
  EXPECT_NO_THROW(const LockedFile second(file));
}

TEST_F(LockedFileTest, ReplaceKeepsTheLock) {
  for (const std::string& file : {write("file", "old"), path("new")}) {
    LockedFile first(file);
    for (const char* bytes : {"one", "two"}) {
      first.replace(bytes);
      EXPECT_EQ(content(file), bytes);
      EXPECT_THROW(const LockedFile second(file), std::runtime_error);
    }
  }
}

TEST_F(LockedFileTest, FailedReplaceKeepsContentAndLock) {
  const std::string file = write("file", "old");
  LockedFile locked(file);
  const auto write_and_fail = [](OutputFile& output) {
    output.write("new");
    throw std::invalid_argument("failure");
  };
  EXPECT_THROW(locked.replace(write_and_fail), std::invalid_argument);
  EXPECT_EQ(content(file), "old");
  EXPECT_THROW(const LockedFile second(file), std::runtime_error);
}

TEST_F(LockedFileTest, DevicesAreNotLocked) {
  LockedFile first("/dev/null");
  EXPECT_NO_THROW(LockedFile("/dev/null").replace("bytes"));
  first.replace("bytes");
}

/// Each thread reads a counter, increments it and writes it back.
TEST_F(LockedFileTest, ConcurrentIncrementsAreAllApplied) {
  const std::string file = write("file", "0");
  constexpr int increments_per_thread = 50;
  const auto increment = [&] {
    for (int done = 0; done < increments_per_thread;) {
      try {
        LockedFile locked(file);
        locked.replace(std::to_string(std::stoi(content(file)) + 1));
        ++done;
      } catch (const std::runtime_error&) {
        std::this_thread::yield();
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(increment);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(content(file), std::to_string(3 * increments_per_thread));
}

}  // namespace
}  // namespace dyad
