// Library for LD_PRELOAD that makes system functions fail. The function DYAD_FAIL_CALL (read, write, fsync, rename,
// linkat, ftruncate, mmap or malloc) fails from its DYAD_FAIL_AT-th call on (default 1), DYAD_FAIL_TIMES times
// (default: in all later calls), with errno DYAD_FAIL_ERROR (default EIO). Calls are counted from the start of main(),
// or from the last call of dyad_fail_call(). At the end of the process the library writes the number of calls to the
// file DYAD_FAIL_REPORT. Calls of malloc by OpenBLAS are not counted.
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" void* __libc_malloc(size_t size);

namespace {

struct Failure {
  char call[16] = "";     ///< name of the function; empty: no failure
  long first = 0;         ///< number of the first call that fails, from 1
  long times = LONG_MAX;  ///< number of consecutive calls that fail
  int error = 0;          ///< errno
};

Failure failure;
std::atomic<long> calls{0};
std::atomic<bool> is_enabled{false};

/// Counts a call of the function and returns true, with errno set, if it must fail.
bool should_fail(const char* call) {
  if (!is_enabled || std::strcmp(failure.call, call) != 0) return false;
  const long number = ++calls;
  if (number < failure.first || number - failure.first >= failure.times) return false;
  errno = failure.error;
  return true;
}

/// Whether an address belongs to OpenBLAS. Its AVX-512 kernels for small products do not check allocations (OpenBLAS
/// 0.3.21), so that a failure there ends the process (docs/reliability.md).
bool is_blas_code(const void* address) {
  Dl_info info;
  return is_enabled && dladdr(address, &info) != 0 && std::strstr(info.dli_fname, "openblas") != nullptr;
}

/// The function of this name in the next library, usually the C library.
template <typename Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

long environment_number(const char* name, long default_value) {
  const char* value = std::getenv(name);
  return value == nullptr ? default_value : std::atol(value);
}

}  // namespace

extern "C" {

using Main = int(int, char**, char**);

/// Sets the failure in a running process and restarts the count. An empty `call` disables it.
void dyad_fail_call(const char* call, long first, long times, int error) {
  is_enabled = false;
  std::snprintf(failure.call, sizeof failure.call, "%s", call);
  failure.first = first;
  failure.times = times;
  failure.error = error;
  calls = 0;
  is_enabled = failure.call[0] != '\0';
}

long dyad_calls_counted() { return calls; }

static Main* real_main = nullptr;

static int main_with_failure(int argc, char** argv, char** environment) {
  if (const char* call = std::getenv("DYAD_FAIL_CALL"); call != nullptr)
    dyad_fail_call(call, environment_number("DYAD_FAIL_AT", 1), environment_number("DYAD_FAIL_TIMES", LONG_MAX),
                   static_cast<int>(environment_number("DYAD_FAIL_ERROR", EIO)));
  return real_main(argc, argv, environment);
}

// The program's start code calls this function with main(). Wrapping main() excludes the calls of static initializers.
int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                      void* stack_end) {
  real_main = main;
  return real<int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main")(
      main_with_failure, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) void report() {
  is_enabled = false;
  const char* path = std::getenv("DYAD_FAIL_REPORT");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, "%ld", calls.load());
  close(file);
}

ssize_t read(int descriptor, void* buffer, size_t size) {
  return should_fail("read") ? -1 : real<ssize_t(int, void*, size_t)>("read")(descriptor, buffer, size);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (descriptor != STDERR_FILENO && should_fail("write")) return -1;
  return real<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, size);
}

int fsync(int descriptor) { return should_fail("fsync") ? -1 : real<int(int)>("fsync")(descriptor); }

int rename(const char* from, const char* to) noexcept {
  return should_fail("rename") ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (should_fail("linkat")) return -1;
  return real<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder, to, flags);
}

int ftruncate(int descriptor, off_t length) noexcept {
  return should_fail("ftruncate") ? -1 : real<int(int, off_t)>("ftruncate")(descriptor, length);
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (should_fail("mmap")) return MAP_FAILED;
  return real<void*(void*, size_t, int, int, int, off_t)>("mmap")(address, length, protection, flags, descriptor,
                                                                  offset);
}

void* malloc(size_t size) noexcept {
  if (is_blas_code(__builtin_return_address(0))) return __libc_malloc(size);
  return should_fail("malloc") ? nullptr : __libc_malloc(size);
}
}
