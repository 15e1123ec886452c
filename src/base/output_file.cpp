#include "base/output_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace dyad {
namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_ == "-") {
    file_ = stdout;
    return;
  }
  target_ = path_;
  if (char* resolved = realpath(path_.c_str(), nullptr)) {
    target_ = resolved;
    std::free(resolved);
  }
  struct stat status {};
  const bool exists = stat(target_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) {
    file_ = std::fopen(target_.c_str(), "wb");
    if (file_ == nullptr) fail("cannot be opened");
    return;
  }
  const int descriptor = open_temporary();
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, exists ? status.st_mode & 07777 : 0666 & ~mask);
  file_ = fdopen(descriptor, "wb");
}

int OutputFile::open_temporary() {
  const int nameless = open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  has_no_name_ = nameless >= 0;
  if (has_no_name_) return nameless;
  std::string name = target_ + ".XXXXXX";
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) fail("cannot be created");
  temporary_ = name;
  return descriptor;
}

/// For the instant before it takes the place of the target.
void OutputFile::give_name() {
  const std::string own = "/proc/self/fd/" + std::to_string(fileno(file_));
  for (int i = 0;; ++i) {
    const std::string name = target_ + "." + std::to_string(getpid()) + "." + std::to_string(i);
    if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return;
    }
    if (errno != EEXIST) fail("cannot be created");
  }
}

OutputFile::~OutputFile() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void OutputFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("cannot be written");
}

void OutputFile::commit() {
  if (std::fflush(file_) != 0) fail("cannot be written");
  if (temporary_.empty() && !has_no_name_) return;
  const bool safe = fsync(fileno(file_)) == 0;
  if (safe && has_no_name_) give_name();
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!safe || !closed) fail("cannot be written");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
  // The new name, too, is to survive a power cut; where a folder cannot be synced, it is as safe as it gets.
  if (const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    fsync(folder);
    close(folder);
  }
}

void OutputFile::fail(const char* what) const {
  const std::string reason = std::strerror(errno);
  throw std::runtime_error((path_ == "-" ? "standard output" : path_) + " " + what + ": " + reason);
}

bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code not_there;
  return a == b || std::filesystem::equivalent(a, b, not_there);
}

}  // namespace dyad
