#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "io/input.h"

namespace dyad {

// The folder io converts bytes to records: files and standard input, decompression, and the csv, libsvm and npy
// formats. Records are cells of text or unscaled numbers; the folder encoding converts them to features.

/// Sequential bytes of a file or of standard input ("-"), decompressed if they are gzip (RFC 1952) or zstd (RFC 8878).
/// Compression is detected from the magic number, not from the file name. Throws DataError for truncated or damaged
/// data, std::runtime_error if the file cannot be opened or read, and ReadingStopped once the input's `stop` returns
/// true. Not thread-safe.
class ByteStream {
 public:
  explicit ByteStream(const Input& input);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;

  /// Reads available bytes into `buffer` and returns their number. Blocks until at least one byte is available.
  /// Returns 0 only at the end of the stream.
  std::size_t read_some(std::span<char> buffer);

  [[nodiscard]] const std::string& path() const { return path_; }

  class Decompressor;

 private:
  std::string path_;
  std::function<bool()> stop_;
  std::unique_ptr<Decompressor> decompressor_;
};

}  // namespace dyad
