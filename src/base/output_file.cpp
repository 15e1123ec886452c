#include "base/output_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
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
  temporary_ = path_ + ".XXXXXX";
  const int descriptor = mkstemp(temporary_.data());
  if (descriptor < 0) {
    temporary_.clear();
    fail("cannot be created");
  }
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(descriptor, 0666 & ~mask);
  file_ = fdopen(descriptor, "wb");
}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  if (file_ != nullptr) std::fclose(file_);
  std::remove(temporary_.c_str());
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
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed into place");
  temporary_.clear();
}

void OutputFile::fail(const char* what) const {
  const std::string reason = std::strerror(errno);
  throw std::runtime_error((path_ == "-" ? "standard output" : path_) + " " + what + ": " + reason);
}

}  // namespace dyad
