#include "base/output_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace dyad {

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
  std::string name = target_ + ".XXXXXX";
  const int descriptor = mkstemp(name.data());
  if (descriptor < 0) fail("cannot be created");
  temporary_ = name;
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, exists ? status.st_mode & 07777 : 0666 & ~mask);
  file_ = fdopen(descriptor, "wb");
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
  if (temporary_.empty()) return;
  const bool safe = fsync(fileno(file_)) == 0;
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!safe || !closed) fail("cannot be written");
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
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
