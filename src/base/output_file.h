#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "base/file_descriptor.h"

namespace dyad {

/// Writes a file atomically. A regular file is written to an unnamed temporary file (O_TMPFILE) or, where the file
/// system has none, to a temporary file beside the target, synced to disk and renamed over the target. Symbolic links
/// are followed; an existing file keeps its mode and, where permitted, its owner; a new one gets the mode 0666 less the
/// umask. Everything else ("-" for standard output, pipes, devices, /dev/stdout, /dev/fd/N) is written to directly and
/// never replaced. Every failure throws std::system_error with the path and the reason. Not thread-safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);

  /// Syncs what was written and gives it a temporary name. Optional before commit().
  void prepare();

  /// Renames the file over the target. Without it the target stays unchanged.
  void commit();

  /// True if the target is written directly, without a temporary file.
  [[nodiscard]] bool is_direct() const { return is_direct_; }
  /// The file that commit() renames; valid between prepare() and commit().
  [[nodiscard]] int descriptor() const { return file_.number(); }

 private:
  void open_temporary();
  /// Calls create(name) with temporary names until one is free. False on failure, with errno set.
  template <typename Create>
  bool create_named(Create&& create);
  [[nodiscard]] FileDescriptor open_named();
  void set_owner_and_mode(const FileDescriptor& file) const;
  [[nodiscard]] bool link_to_name();
  void copy_to_named();
  [[noreturn]] void fail(const char* what) const;

  std::string path_;                     ///< as given
  std::string target_;                   ///< with symbolic links followed
  std::string temporary_;                ///< name of the temporary file; empty while it has none
  std::optional<struct stat> existing_;  ///< status of the file that commit() replaces
  FileDescriptor file_;
  bool is_direct_ = false;
  bool is_prepared_ = false;
};

}  // namespace dyad
