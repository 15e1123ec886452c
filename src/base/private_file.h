#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/file_descriptor.h"

namespace dyad {

/// Failure to create, write or map a PrivateFile.
class PrivateFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Unlinked temporary file. It has no name, and the file system frees it when it is closed or the process ends. Every
/// failure throws PrivateFileError with the folder and the reason. An append that would leave less than 5% of the disk
/// free is also a failure. Not thread-safe.
class PrivateFile {
 public:
  explicit PrivateFile(const std::string& folder);
  ~PrivateFile();
  PrivateFile(const PrivateFile&) = delete;
  PrivateFile& operator=(const PrivateFile&) = delete;

  void append(const void* bytes, std::size_t count);

  /// Maps the whole file into memory (shared and writable, so that the kernel can write pages back under memory
  /// pressure). Returns nullptr for an empty file. The object owns the mapping. Do not append afterwards.
  [[nodiscard]] void* map();

 private:
  [[noreturn]] void fail(const char* problem) const;

  std::string folder_;
  FileDescriptor file_;
  std::size_t size_ = 0;    ///< bytes
  void* mapped_ = nullptr;  ///< address of the mapping; nullptr before map()
};

/// Folder for private files: TMPDIR if it is set, otherwise the folder of the output file `output_path`.
std::string temporary_folder(const std::string& output_path);

}  // namespace dyad
