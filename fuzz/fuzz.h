#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

/// What a fuzzer calls with every input: libFuzzer's main where there is one, replay.cpp otherwise.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace dyad::fuzz {

/// A promise that was not kept.
[[noreturn]] inline void broken(const char* promise) {
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

inline void require(bool holds, const char* promise) {
  if (!holds) broken(promise);
}

/// Runs what may be refused in just this way.
template <typename Refusal, typename Action>
void may_refuse(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Refusal&) {
  }
}

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Whether it says that it is gzip or zstd, which readers unpack.
inline bool is_packed(std::string_view bytes) {
  const bool is_skippable_frame =
      bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18";
  return bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd") || is_skippable_frame;
}

/// A file in memory, with a name to open it by.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : number_(memfd_create("dyad", 0)) {
    require(number_ >= 0, "there is a file in memory");
    while (!bytes.empty()) {
      const ssize_t written = write(number_, bytes.data(), bytes.size());
      require(written > 0, "the file in memory can be written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ~MemoryFile() { close(number_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

/// Small decisions from the front of an input; zeros when it is used up.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : bytes_(bytes) {}

  /// In [0, count).
  int among(int count) {
    if (bytes_.empty()) return 0;
    const int choice = static_cast<unsigned char>(bytes_.front()) % count;
    bytes_.remove_prefix(1);
    return choice;
  }
  bool flag() { return among(2) == 1; }
  [[nodiscard]] std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace dyad::fuzz
