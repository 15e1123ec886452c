#include <array>

#include <zlib.h>
#include <zstd.h>

#include <dyad/error.h>

#include "fuzz.h"
#include "io/byte_stream.h"

namespace dyad::fuzz {
namespace {

/// The bytes that ByteStream reads from a file with this content. Stops when at least `max_bytes` are read.
std::string decompressed(const std::string& bytes) {
  constexpr std::size_t max_bytes = std::size_t{1} << 22;  // 4 MiB; a small input can decompress to gigabytes
  const MemoryFile file(bytes);
  ByteStream stream(file.path());
  std::array<char, 4096> buffer{};
  std::string all;
  while (all.size() < max_bytes) {
    const std::size_t count = stream.read_some(buffer);
    require(count <= buffer.size(), "a read does not exceed the buffer");
    if (count == 0) break;
    all.append(buffer.data(), count);
  }
  return all;
}

std::string gzip_compressed(std::string bytes) {
  z_stream stream{};
  constexpr int gzip_window_bits = 16 + MAX_WBITS;  // zlib: 16 selects the gzip header
  require(deflateInit2(&stream, 1, Z_DEFLATED, gzip_window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib is initialized");
  std::string compressed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib compresses all bytes");
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  return compressed;
}

std::string zstd_compressed(const std::string& bytes) {
  std::string compressed(ZSTD_compressBound(bytes.size()), '\0');
  compressed.resize(ZSTD_compress(compressed.data(), compressed.size(), bytes.data(), bytes.size(), 1));
  return compressed;
}

}  // namespace
}  // namespace dyad::fuzz

/// Reads the input unchanged, then compressed with gzip, then compressed with zstd.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string bytes = text_of(data, size);
  if (is_compressed(bytes))
    allow_exception<dyad::DataError>([&] { (void)decompressed(bytes); });
  else
    require(decompressed(bytes) == bytes, "uncompressed bytes are read unchanged");
  require(decompressed(gzip_compressed(bytes)) == bytes, "gzip is decompressed");
  require(decompressed(zstd_compressed(bytes)) == bytes, "zstd is decompressed");
  return 0;
}
