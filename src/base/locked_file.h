#pragma once

#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace dyad {

/// A file that one process at a time reads, changes and writes back. The lock (flock) belongs to the file's inode;
/// replace() moves it to the new inode before that takes over the name, so that the name is locked at all times. A path
/// that names no regular file is not locked.
class LockedFile {
 public:
  /// Throws std::runtime_error if another LockedFile, of this or another process, holds the lock. The message contains
  /// the number of that process where the system reports it.
  explicit LockedFile(std::string path);

  /// Replaces the content atomically, as OutputFile does, and throws as it does.
  void replace(std::string_view bytes);

 private:
  std::string path_;
  FileDescriptor lock_;
};

}  // namespace dyad
