// Loaded before the C library (LD_PRELOAD): the call DYAD_FAIL_CALL (read, fwrite, fsync or rename) fails from its
// DYAD_FAIL_AT-th time on, with the error DYAD_FAIL_ERROR.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

namespace {

bool fails(const char* call) {
  static std::atomic<long> count{0};
  const char* which = std::getenv("DYAD_FAIL_CALL");
  if (which == nullptr || std::strcmp(which, call) != 0) return false;
  if (++count < std::atol(std::getenv("DYAD_FAIL_AT"))) return false;
  errno = std::atoi(std::getenv("DYAD_FAIL_ERROR"));
  return true;
}

template <typename Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t read(int descriptor, void* buffer, size_t size) {
  return fails("read") ? -1 : real<ssize_t(int, void*, size_t)>("read")(descriptor, buffer, size);
}

size_t fwrite(const void* bytes, size_t size, size_t count, FILE* file) {
  if (file != stderr && fails("fwrite")) return 0;
  return real<size_t(const void*, size_t, size_t, FILE*)>("fwrite")(bytes, size, count, file);
}

int fsync(int descriptor) { return fails("fsync") ? -1 : real<int(int)>("fsync")(descriptor); }

int rename(const char* from, const char* to) noexcept {
  return fails("rename") ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}
}
