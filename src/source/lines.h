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

/// Cuts a stream into blocks of whole lines, without a byte order mark before the first. A line may be as long as it
/// likes, up to a limit that no row needs.
class LineReader {
 public:
  explicit LineReader(const Input& input);

  /// With cells, of which one that begins with a quote (") may hold newlines.
  LineReader(const Input& input, char separator);

  /// False at the end.
  bool next(LineBlock& block);

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }

 private:
  [[nodiscard]] std::size_t end_of_whole_lines();

  ByteStream bytes_;
  char separator_ = '\0';  ///< of cells; none: quotes are text like any other
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  ///< of what has not been handed out
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  ///< up to here there is no end of a line
  bool inside_quotes_ = false;
  bool quote_may_open_ = true;  ///< at the beginning of a cell, or behind a quote that closed one
  std::int64_t next_line_ = 1;
  bool ended_ = false;
};

}  // namespace dyad
