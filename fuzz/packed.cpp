#include <array>

#include <zlib.h>
#include <zstd.h>

#include <dyad/data_error.h>

#include "fuzz.h"
#include "io/byte_stream.h"

namespace dyad::fuzz {
namespace {

std::string unpacked(const std::string& bytes) {
  constexpr std::size_t enough = std::size_t{1} << 22;  // a bomb unpacks to any size, but never at once
  const MemoryFile file(bytes);
  ByteStream stream(file.path());
  std::array<char, 4096> buffer{};
  std::string all;
  while (all.size() < enough) {
    const std::size_t got = stream.read_some(buffer);
    require(got <= buffer.size(), "no more is read than there is room for");
    if (got == 0) break;
    all.append(buffer.data(), got);
  }
  return all;
}

std::string gzipped(std::string bytes) {
  z_stream stream{};
  constexpr int gzip_header = 16 + MAX_WBITS;
  require(deflateInit2(&stream, 1, Z_DEFLATED, gzip_header, 8, Z_DEFAULT_STRATEGY) == Z_OK, "there is room for zlib");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "everything can be packed");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd_packed(const std::string& bytes) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 1));
  return packed;
}

}  // namespace
}  // namespace dyad::fuzz

/// Bytes that may be gzip or zstd, or only say so; and bytes that are packed here.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace dyad::fuzz;
  const std::string bytes = text_of(data, size);
  if (is_packed(bytes))
    may_refuse<dyad::DataError>([&] { (void)unpacked(bytes); });
  else
    require(unpacked(bytes) == bytes, "what is not packed is read as it is");
  require(unpacked(gzipped(bytes)) == bytes, "gzip is read back");
  require(unpacked(zstd_packed(bytes)) == bytes, "zstd is read back");
  return 0;
}
