#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "io/input.h"

namespace dyad {

/// Bytes of a file or of standard input ("-") in order, decompressed if they are gzip or zstd. Compression is detected
/// from the magic number, not from the name. Throws DataError for truncated or damaged data, std::runtime_error if the
/// file cannot be opened or read, and ReadingStopped once the input's `stop` returns true.
class ByteStream {
 public:
  explicit ByteStream(const Input& input);
  ~ByteStream();
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;

  /// What is there already, without waiting for a full buffer; 0 only at the end.
  std::size_t read_some(std::span<char> buffer);

  [[nodiscard]] const std::string& path() const { return path_; }

  class Unpacker;

 private:
  std::string path_;
  std::function<bool()> stop_;
  std::unique_ptr<Unpacker> unpacker_;
};

}  // namespace dyad
