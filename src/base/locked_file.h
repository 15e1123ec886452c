#pragma once

#include <string>
#include <string_view>

#include "base/file_descriptor.h"

namespace dyad {

/// Holds an exclusive lock (flock) on a file while the caller reads, changes and replaces it. The lock belongs to the
/// file's inode. replace() locks the new file before it renames it over the path, so that the path is locked at all
/// times. Pipes, devices, and files on file systems without locks are not locked. Not thread-safe.
class LockedFile {
 public:
  /// Throws std::runtime_error if another LockedFile, of this or another process, holds the lock. The message contains
  /// the id of that process if /proc/locks lists it.
  explicit LockedFile(std::string path);

  /// Replaces the content atomically, by an OutputFile. Throws the exceptions of OutputFile.
  void replace(std::string_view bytes);

 private:
  std::string path_;
  FileDescriptor lock_;  ///< open descriptor that holds the lock; none if the file is not locked
};

}  // namespace dyad
