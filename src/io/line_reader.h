#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_stream.h"

namespace dyad {

/// Whole lines, many at a time, each ending in a newline (one is added to a last line without).
struct LineBlock {
  std::string_view text;        ///< valid until the next call
  std::int64_t first_line = 1;  ///< of the file
};

/// Splits a stream into blocks of whole lines, without a byte order mark before the first. The buffer is never larger
/// than the longest line that the input's limits allow; a longer line is a DataError.
class LineReader {
 public:
  /// `separator`: of cells, of which one that begins with a quote (") may contain newlines. '\0': no cells, and quotes
  /// have no meaning.
  explicit LineReader(const Input& input, char separator = '\0');

  /// False at the end.
  bool next(LineBlock& block);

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }

 private:
  [[nodiscard]] std::size_t end_of_whole_lines();
  [[noreturn]] void refuse_line() const;

  ByteStream bytes_;
  char separator_;
  std::size_t max_buffer_bytes_;  ///< of the longest line and its newline
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
