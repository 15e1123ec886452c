#include "base/locked_file.h"

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dyad {
namespace {

/// "process 1234" if /proc/locks lists the holder of the flock on this inode, otherwise "another process". A line is
/// `1: FLOCK ADVISORY WRITE 1234 08:01:5678 0 EOF`; the inode follows the last colon of the sixth field.
std::string describe_lock_holder(ino_t inode) {
  std::ifstream locks("/proc/locks");
  std::string number;
  std::string kind;
  std::string mandatory;
  std::string access;
  std::string process;
  std::string file;
  std::string rest;
  while (locks >> number >> kind >> mandatory >> access >> process >> file && std::getline(locks, rest))
    if (kind == "FLOCK" && file.substr(file.rfind(':') + 1) == std::to_string(inode) && process != "0")
      return "process " + process;
  return "another process";
}

}  // namespace

LockedFile::LockedFile(std::string path) : path_(std::move(path)) {
  while (true) {
    FileDescriptor file(open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    // NFS grants an exclusive lock only to a descriptor that is open for writing, flock(2). Local file systems also
    // grant it to a descriptor that is open for reading only.
    if (!file.is_open()) file = FileDescriptor(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat opened {};
    if (!file.is_open() || fstat(file.number(), &opened) != 0 || !S_ISREG(opened.st_mode)) return;
    if (flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK)
        throw std::runtime_error(path_ + " is in use by " + describe_lock_holder(opened.st_ino) +
                                 ", which is training this model; wait until it ends, or stop it");
      return;  // the file system does not support locks
    }
    struct stat named {};
    if (stat(path_.c_str(), &named) == 0 && named.st_dev == opened.st_dev && named.st_ino == opened.st_ino) {
      lock_ = std::move(file);
      return;
    }
    // The file was replaced between open() and flock(): try again with the new file.
  }
}

void LockedFile::replace(const std::function<void(OutputFile&)>& write) {
  OutputFile file(path_);
  write(file);
  file.prepare();
  FileDescriptor next;
  if (!file.is_direct()) {
    next = FileDescriptor(fcntl(file.descriptor(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (next.is_open()) flock(next.number(), LOCK_EX | LOCK_NB);
  }
  file.commit();
  lock_ = std::move(next);
}

}  // namespace dyad
