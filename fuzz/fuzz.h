#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

/// Entry point of a fuzz target, called with every input by libFuzzer or, in builds without it, by replay.cpp.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Helpers of the fuzz targets. Each target passes an input to one part of the library and aborts if a required
/// property is violated.
namespace dyad::fuzz {

[[noreturn]] inline void fail(const char* property) {
  std::fprintf(stderr, "property violated: %s\n", property);
  std::abort();
}

inline void require(bool holds, const char* property) {
  if (!holds) fail(property);
}

/// Runs the action. Exceptions of type `Exception` are an allowed outcome; all others terminate the target.
template <typename Exception, typename Action>
void allow_exception(Action&& action) {
  try {
    std::forward<Action>(action)();
  } catch (const Exception&) {
  }
}

inline std::string text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// True if the bytes begin with the magic number of gzip, of a zstd frame or of a zstd skippable frame (0x184D2A50 to
/// 0x184D2A5F, little-endian). Readers decompress such files.
inline bool is_compressed(std::string_view bytes) {
  const bool is_skippable_frame =
      bytes.size() >= 4 && (bytes[0] & 0xf0) == 0x50 && bytes.substr(1, 3) == "\x2a\x4d\x18";
  return bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd") || is_skippable_frame;
}

/// Anonymous file in memory (memfd_create) with a path to open it.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("dyad", 0)) {
    require(descriptor_ >= 0, "the file in memory is created");
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      require(written > 0, "the file in memory is written");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

/// Takes option values from the leading bytes of an input, one byte each. Returns 0 after the last byte.
class OptionBytes {
 public:
  explicit OptionBytes(std::string_view bytes) : bytes_(bytes) {}

  /// A value in [0, count).
  int next(int count) {
    if (bytes_.empty()) return 0;
    const int value = static_cast<unsigned char>(bytes_.front()) % count;
    bytes_.remove_prefix(1);
    return value;
  }
  bool next_flag() { return next(2) == 1; }
  [[nodiscard]] std::string_view remaining() const { return bytes_; }

 private:
  std::string_view bytes_;
};

}  // namespace dyad::fuzz
