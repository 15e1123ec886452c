#include "base/memory_limit.h"

#include "temporary_folder.h"

namespace dyad {
namespace {

/// Folder with copies of the files of /proc and of the control groups.
class MemoryLimit : public test::TemporaryFolderTest {
 protected:
  void write_file(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    (void)write(name, text + "\n");
  }
  [[nodiscard]] double limit() const { return usable_memory_bytes(folder()); }
  [[nodiscard]] double physical() const { return usable_memory_bytes(path("no such folder")); }

  static constexpr const char* version_2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
};

TEST_F(MemoryLimit, EqualsPhysicalMemoryWithoutControlGroups) {
  EXPECT_GT(physical(), 1e6);
  write_file("proc/self/cgroup", "0::/");
  write_file("proc/self/mountinfo", version_2);
  EXPECT_EQ(limit(), physical()) << "no memory.max in the root group";
}

TEST_F(MemoryLimit, UsesGroupAndAncestorsOfVersion2) {
  write_file("proc/self/cgroup", "0::/user.slice/job");
  write_file("proc/self/mountinfo", version_2);
  write_file("sys/fs/cgroup/user.slice/memory.max", "max");
  write_file("sys/fs/cgroup/user.slice/job/memory.max", "8000000");
  EXPECT_EQ(limit(), 8e6);
  write_file("sys/fs/cgroup/user.slice/job/memory.max", "max");
  EXPECT_EQ(limit(), physical());
  write_file("sys/fs/cgroup/user.slice/memory.max", "5000000");
  EXPECT_EQ(limit(), 5e6) << "of an ancestor";
}

TEST_F(MemoryLimit, UsesGroupOfVersion1) {
  write_file("proc/self/cgroup", "5:cpu,cpuacct:/elsewhere\n4:memory:/docker/abc\n0::/");
  write_file("proc/self/mountinfo",
             "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
             "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:12 - cgroup cgroup rw,memory");
  write_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(limit(), physical());
  write_file("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "7000000");
  write_file("sys/fs/cgroup/cpu/elsewhere/memory.limit_in_bytes", "1");
  EXPECT_EQ(limit(), 7e6);
}

TEST_F(MemoryLimit, UsesGroupThatAContainerMountsAsRoot) {
  write_file("proc/self/cgroup", "4:memory:/docker/abc/job");
  write_file("proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  write_file("sys/fs/cgroup/memory/memory.limit_in_bytes", "6000000");
  EXPECT_EQ(limit(), 6e6);
  write_file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000000");
  EXPECT_EQ(limit(), 4e6);
}

}  // namespace
}  // namespace dyad
