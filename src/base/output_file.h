#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <sys/stat.h>

#include "base/file_descriptor.h"

namespace dyad {

/// Writes a file atomically. The bytes are written to a temporary file in the folder of the target. The temporary file
/// has no name until prepare() if the file system supports O_TMPFILE. commit() syncs that file to disk and renames it
/// over the target. Symbolic links are followed. An existing file keeps its mode and, if permitted, its owner. A new
/// file has the mode 0666 & ~umask. Standard output ("-"), pipes, devices and open descriptors (/dev/stdout, /dev/fd/N)
/// are written directly. Every failure throws std::system_error with the path and the reason, except that a cycle of
/// symbolic links throws std::runtime_error. Not thread-safe.
class OutputFile {
 public:
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);

  /// Syncs the written bytes to disk and links an unnamed file to a temporary name. Has no effect on a target that is
  /// written directly. commit() calls prepare() if the caller did not.
  void prepare();

  /// Closes the file and renames it over the target. Without commit(), the target is unchanged unless it is written
  /// directly.
  void commit();

  /// True if the target is written directly, without a temporary file.
  [[nodiscard]] bool is_direct() const { return is_direct_; }
  /// Descriptor of the file that commit() renames. Valid between prepare() and commit().
  [[nodiscard]] int descriptor() const { return file_.number(); }

 private:
  void open_temporary();
  /// Calls create(name) with temporary names until it succeeds. Returns false on an error other than EEXIST, with errno
  /// set.
  template <typename Create>
  bool create_named(Create&& create);
  /// Creates a temporary file with a name in the folder of the target.
  [[nodiscard]] FileDescriptor open_named();
  void set_owner_and_mode(const FileDescriptor& file) const;
  /// Links the unnamed file to a temporary name. Returns false on failure.
  [[nodiscard]] bool link_to_name();
  /// Copies the unnamed file to a temporary file with a name.
  void copy_to_named();
  /// Throws std::system_error with the path, `problem` and errno.
  [[noreturn]] void fail(const char* problem) const;

  std::string path_;                     ///< argument of the constructor
  std::string target_;                   ///< path_ with symbolic links followed
  std::string temporary_;                ///< name of the temporary file; empty: unnamed
  std::optional<struct stat> existing_;  ///< status of the file that commit() replaces
  FileDescriptor file_;
  bool is_direct_ = false;
  bool is_prepared_ = false;
};

}  // namespace dyad
