#include <array>

#include <dyad/data_error.h>

#include "fuzz.h"
#include "source/byte_stream.h"

/// Bytes that may be gzip or zstd, or only say so.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const MemoryFile file(text_of(data, size));
  constexpr std::size_t enough = std::size_t{1} << 22;  // a bomb unpacks to any size, but never at once
  try {
    dyad::ByteStream stream(file.path());
    std::array<char, 4096> buffer{};
    std::size_t total = 0;
    while (total < enough) {
      const std::size_t got = stream.read_some(buffer);
      require(got <= buffer.size(), "no more is read than there is room for");
      if (got == 0) break;
      total += got;
    }
  } catch (const dyad::DataError&) {
  }
  return 0;
}
