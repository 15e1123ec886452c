#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "source/byte_stream.h"

namespace dyad {

/// Whole lines, many at a time, each ending in a newline (one is added to a last line without).
struct LineBlock {
  std::string_view text;        ///< valid until the next call
  std::int64_t first_line = 1;  ///< of the file
};

/// Cuts a stream into blocks of whole lines. A line may be as long as it likes, up to a limit that no row needs.
class LineReader {
 public:
  explicit LineReader(const std::string& path);

  /// False at the end.
  bool next(LineBlock& block);

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }

 private:
  ByteStream bytes_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been handed out
  std::size_t end_ = 0;
  std::int64_t next_line_ = 1;
  bool ended_ = false;
};

}  // namespace dyad
