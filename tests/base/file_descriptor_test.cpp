#include "base/file_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace dyad {
namespace {

TEST(FileDescriptor, AvoidsNumbersOfStandardStreams) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    const FileDescriptor first(open("/dev/null", O_RDONLY));
    const FileDescriptor second(open("/dev/null", O_WRONLY));
    const bool is_free = fcntl(STDIN_FILENO, F_GETFD) < 0 && fcntl(STDERR_FILENO, F_GETFD) < 0;
    _exit(first.number() > STDERR_FILENO && second.number() > STDERR_FILENO && is_free ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(FileDescriptor, MoveTransfersOwnershipAndCloseIsFinal) {
  FileDescriptor first(open("/dev/null", O_RDONLY));
  const int number = first.number();
  FileDescriptor second(std::move(first));
  EXPECT_EQ(second.number(), number);
  EXPECT_TRUE(second.close());
  EXPECT_FALSE(second.is_open());
  EXPECT_LT(fcntl(number, F_GETFD), 0);
  EXPECT_FALSE(FileDescriptor(open("/no/such/file", O_RDONLY)).is_open());
}

}  // namespace
}  // namespace dyad
