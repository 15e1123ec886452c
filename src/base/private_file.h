#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/file_descriptor.h"

namespace dyad {

/// What PrivateFile throws.
class PrivateFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Unlinked temporary file: no other process can open it, and it is removed when it is closed or the process ends.
/// Every failure throws PrivateFileError with the folder and the reason, a disk that is almost full among them.
class PrivateFile {
 public:
  explicit PrivateFile(const std::string& folder);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  void append(const void* bytes, std::size_t count);

  /// All of it, as memory that the machine can take back. Nothing is appended afterwards.
  [[nodiscard]] void* map();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::string folder_;
  FileDescriptor file_;
  std::size_t size_ = 0;
  void* mapped_ = nullptr;
};

/// The folder for such files: TMPDIR where it is set, else that of a file that will be written anyway.
std::string folder_for_private_files(const std::string& beside);

}  // namespace dyad
