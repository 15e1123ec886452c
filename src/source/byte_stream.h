#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "source/input.h"

namespace dyad {

/// The bytes of a file or of standard input ("-"), one after the other, unpacked where they are gzip or zstd. What they
/// are is told by their first bytes, not by the name. Throws DataError for what is cut off or damaged, and
/// std::runtime_error for what cannot be opened or read.
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
  std::unique_ptr<Unpacker> unpacker_;
};

}  // namespace dyad
