#include "base/file_descriptor.h"

#include <fcntl.h>
#include <unistd.h>

namespace dyad {

FileDescriptor::FileDescriptor(int number) : number_(number) {
  if (number < 0 || number > STDERR_FILENO) return;
  number_ = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(number);
}

bool FileDescriptor::close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

}  // namespace dyad
