#include "base/private_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace dyad {
namespace {

/// Fraction of the disk that an append must leave free for other programs. The message of append() contains it.
/// Sensitivity: docs/constants.md.
constexpr double min_free_disk_fraction = 0.05;

}  // namespace

PrivateFile::PrivateFile(const std::string& folder) : folder_(folder) {
  std::string name = folder + "/dyad-cache.XXXXXX";
  file_ = FileDescriptor(mkostemp(name.data(), O_CLOEXEC));
  if (!file_.is_open()) fail("cannot be created");
  unlink(name.c_str());
}

PrivateFile::~PrivateFile() {
  if (mapped_ != nullptr) munmap(mapped_, size_);
}

void PrivateFile::append(const void* bytes, std::size_t count) {
  struct statvfs disk {};
  if (fstatvfs(file_.number(), &disk) == 0) {
    const auto block = static_cast<double>(disk.f_frsize);
    const double free_bytes_after = static_cast<double>(disk.f_bavail) * block - static_cast<double>(count);
    if (free_bytes_after < min_free_disk_fraction * static_cast<double>(disk.f_blocks) * block) {
      errno = ENOSPC;
      fail("cannot grow, because less than 5% of the disk would stay free (set TMPDIR to a folder on another disk)");
    }
  }
  const auto* next = static_cast<const char*>(bytes);
  for (std::size_t rest = count; rest > 0;) {
    const ssize_t written = write(file_.number(), next, rest);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot be written");
    next += written;
    rest -= static_cast<std::size_t>(written);
  }
  size_ += count;
}

void* PrivateFile::map() {
  if (mapped_ != nullptr || size_ == 0) return mapped_;
  void* address = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (address == MAP_FAILED) fail("cannot be mapped into memory");
  mapped_ = address;
  return mapped_;
}

void PrivateFile::fail(const char* problem) const {
  const std::string reason = std::strerror(errno);
  throw PrivateFileError("the temporary cache file in the folder " + folder_ + " " + problem + ": " + reason);
}

std::string temporary_folder(const std::string& output_path) {
  if (const char* given = std::getenv("TMPDIR"); given != nullptr && *given != '\0') return given;
  const std::filesystem::path folder = std::filesystem::path(output_path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace dyad
