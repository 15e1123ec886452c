#include "base/output_file.h"

#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/file_paths.h"

namespace dyad {
namespace {

/// Writes all bytes, also to a non-blocking descriptor. Returns false on failure, with errno set.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EAGAIN) {
      pollfd ready{descriptor, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

/// Mode of a temporary file until set_owner_and_mode() sets that of the file it replaces.
constexpr mode_t private_mode = 0600;
/// Mode of a new file; the system clears the bits of the umask.
constexpr mode_t new_file_mode = 0666;

/// Path by which linkat() accesses an unnamed file.
std::string unnamed_path(const FileDescriptor& file) { return "/proc/self/fd/" + std::to_string(file.number()); }

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  const ResolvedPath resolved = path_ == "-" ? ResolvedPath{path_, STDOUT_FILENO} : resolve_links(path_);
  target_ = resolved.path;
  struct stat status {};
  if (!resolved.descriptor && stat(target_.c_str(), &status) == 0) existing_ = status;
  is_direct_ = resolved.descriptor || (existing_ && !S_ISREG(existing_->st_mode));
  if (!is_direct_) {
    open_temporary();
    return;
  }
  file_ = FileDescriptor(resolved.descriptor ? fcntl(*resolved.descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                                             : open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!file_.is_open()) fail("cannot be opened");
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::open_temporary() {
#ifdef O_TMPFILE  // not on macOS
  const std::string folder = folder_of(target_);
  file_ =
      FileDescriptor(open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, existing_ ? private_mode : new_file_mode));
#endif
  // link_to_name() requires /proc.
  if (file_.is_open() && access(unnamed_path(file_).c_str(), F_OK) != 0) file_ = FileDescriptor();
  if (!file_.is_open()) file_ = open_named();
  set_owner_and_mode(file_);
}

template <typename Create>
bool OutputFile::create_named(Create&& create) {
  for (int attempt = 0;; ++attempt) {
    std::string name = target_ + "." + std::to_string(getpid()) + "." + std::to_string(attempt);
    if (create(name.c_str())) {
      temporary_ = std::move(name);
      return true;
    }
    if (errno != EEXIST) return false;
  }
}

FileDescriptor OutputFile::open_named() {
  FileDescriptor file;
  const auto create = [&](const char* name) {
    file = FileDescriptor(open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, existing_ ? private_mode : new_file_mode));
    return file.is_open();
  };
  if (!create_named(create)) fail("cannot be created");
  return file;
}

/// Sets the owner first, because a change of the owner clears mode bits. Only root can change the owner, so that a
/// failure is ignored.
void OutputFile::set_owner_and_mode(const FileDescriptor& file) const {
  if (!existing_) return;
  if (existing_->st_uid != geteuid() || existing_->st_gid != getegid())
    (void)!fchown(file.number(), existing_->st_uid, existing_->st_gid);
  fchmod(file.number(), existing_->st_mode & 07777);
}

bool OutputFile::link_to_name() {
  const std::string unnamed = unnamed_path(file_);
  return create_named(
      [&](const char* name) { return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0; });
}

/// Used for file systems that support unnamed files but not linkat() on them.
void OutputFile::copy_to_named() {
  FileDescriptor named = open_named();
  set_owner_and_mode(named);
  // Controls the number of system calls. Sensitivity: docs/constants.md.
  constexpr std::size_t copy_buffer_bytes = std::size_t{1} << 20;
  std::vector<char> buffer(copy_buffer_bytes);
  off_t done = 0;
  while (true) {
    const ssize_t byte_count = pread(file_.number(), buffer.data(), buffer.size(), done);
    if (byte_count < 0 && errno == EINTR) continue;
    if (byte_count < 0 || !write_all(named.number(), {buffer.data(), static_cast<std::size_t>(byte_count)}))
      fail("cannot be written");
    if (byte_count == 0) break;
    done += byte_count;
  }
  if (fsync(named.number()) != 0) fail("cannot be written");
  file_ = std::move(named);
}

void OutputFile::write(std::string_view bytes) {
  if (!write_all(file_.number(), bytes)) fail("cannot be written");
}

void OutputFile::prepare() {
  if (is_direct_ || is_prepared_) return;
  if (fsync(file_.number()) != 0) fail("cannot be written");
  if (temporary_.empty() && !link_to_name()) copy_to_named();
  is_prepared_ = true;
}

void OutputFile::commit() {
  prepare();
  if (!file_.close()) fail("cannot be written");
  if (is_direct_) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
  // The folder is synced so that the rename survives a power failure. Some file systems cannot sync a folder; their
  // error is ignored.
  if (const FileDescriptor folder(open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      folder.is_open())
    fsync(folder.number());
}

void OutputFile::fail(const char* problem) const {
  const int error = errno;
  throw std::system_error(error, std::generic_category(), (path_ == "-" ? "standard output" : path_) + " " + problem);
}

}  // namespace dyad
