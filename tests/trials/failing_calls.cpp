// Loaded before the C library (LD_PRELOAD): the call DYAD_FAIL_CALL (read, write, fsync, rename, linkat, ftruncate,
// mmap or malloc) fails from its DYAD_FAIL_AT-th time on, DYAD_FAIL_TIMES times (default: always), with the error
// DYAD_FAIL_ERROR. Calls are counted from the start of main(), or from the last call of dyad_fail_call(). At the end of
// the process the number of calls is written to the file DYAD_FAIL_REPORT.
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
  char call[16] = "";
  long first = 0;
  long times = LONG_MAX;
  int error = 0;
};

Failure failure;
std::atomic<long> calls{0};
std::atomic<bool> is_armed{false};

bool fails(const char* call) {
  if (!is_armed || std::strcmp(failure.call, call) != 0) return false;
  const long number = ++calls;
  if (number < failure.first || number - failure.first >= failure.times) return false;
  errno = failure.error;
  return true;
}

template <typename Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

long environment_number(const char* name, long otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::atol(value);
}

}  // namespace

extern "C" {

using Main = int(int, char**, char**);

/// Arms the failure inside a running process; `call` empty: none.
void dyad_fail_call(const char* call, long first, long times, int error) {
  is_armed = false;
  std::snprintf(failure.call, sizeof failure.call, "%s", call);
  failure.first = first;
  failure.times = times;
  failure.error = error;
  calls = 0;
  is_armed = failure.call[0] != '\0';
}

long dyad_calls_counted() { return calls; }

static Main* real_main = nullptr;

static int armed_main(int argc, char** argv, char** environment) {
  if (const char* call = std::getenv("DYAD_FAIL_CALL"); call != nullptr)
    dyad_fail_call(call, environment_number("DYAD_FAIL_AT", 1), environment_number("DYAD_FAIL_TIMES", LONG_MAX),
                   static_cast<int>(environment_number("DYAD_FAIL_ERROR", EIO)));
  return real_main(argc, argv, environment);
}

// The loader calls this function with the program's main(), behind which static objects have been initialized.
int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(), void (*rtld_fini)(),
                      void* stack_end) {
  real_main = main;
  return real<int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main")(
      armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

__attribute__((destructor)) void report() {
  is_armed = false;
  const char* path = std::getenv("DYAD_FAIL_REPORT");
  if (path == nullptr) return;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return;
  dprintf(file, "%ld", calls.load());
  close(file);
}

ssize_t read(int descriptor, void* buffer, size_t size) {
  return fails("read") ? -1 : real<ssize_t(int, void*, size_t)>("read")(descriptor, buffer, size);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  if (descriptor != STDERR_FILENO && fails("write")) return -1;
  return real<ssize_t(int, const void*, size_t)>("write")(descriptor, bytes, size);
}

int fsync(int descriptor) { return fails("fsync") ? -1 : real<int(int)>("fsync")(descriptor); }

int rename(const char* from, const char* to) noexcept {
  return fails("rename") ? -1 : real<int(const char*, const char*)>("rename")(from, to);
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  if (fails("linkat")) return -1;
  return real<int(int, const char*, int, const char*, int)>("linkat")(from_folder, from, to_folder, to, flags);
}

int ftruncate(int descriptor, off_t length) noexcept {
  return fails("ftruncate") ? -1 : real<int(int, off_t)>("ftruncate")(descriptor, length);
}

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  if (fails("mmap")) return MAP_FAILED;
  return real<void*(void*, size_t, int, int, int, off_t)>("mmap")(address, length, protection, flags, descriptor,
                                                                  offset);
}

void* malloc(size_t size) noexcept { return fails("malloc") ? nullptr : __libc_malloc(size); }
}
