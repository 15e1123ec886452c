#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/output_file.h"

namespace dyad {

/// Holds an exclusive lock (flock) on a file while the caller reads, changes and replaces it. The lock belongs to the
/// file's inode. replace() locks the new file before it renames it over the path, so that the path is locked at all
/// times. Pipes, devices, and files on file systems without locks are not locked. Not thread-safe.
class LockedFile {
 public:
  /// Throws std::runtime_error if another LockedFile, of this or another process, holds the lock. The message contains
  /// the id of that process if /proc/locks lists it.
  explicit LockedFile(std::string path);

  /// Replaces the content atomically by what `write` writes to the file. Throws the exceptions of OutputFile and of
  /// `write`, with the content unchanged.
  void replace(const std::function<void(OutputFile&)>& write);
  void replace(std::string_view bytes) {
    replace([&](OutputFile& file) { file.write(bytes); });
  }

 private:
  std::string path_;
  FileDescriptor lock_;  ///< open descriptor that holds the lock; none if the file is not locked
};

}  // namespace dyad
