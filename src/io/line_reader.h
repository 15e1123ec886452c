#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_stream.h"

namespace dyad {

/// A block of whole lines. Each ends in a newline, which is added to the last line of a file that has none.
struct LineBlock {
  std::string_view text;        ///< valid until the next call of LineReader::next(), see LineReader::take_buffer()
  std::int64_t first_line = 1;  ///< line number in the file, from 1
};

/// Splits a stream into blocks of whole lines and skips a byte order mark. The buffer has Input::block_bytes bytes. It
/// is doubled until it contains a whole line, up to ReadLimits::max_line_bytes + 1 bytes; a longer line is a DataError.
class LineReader {
 public:
  /// `separator`: character between csv cells. A cell that starts with a double quote may contain newlines, which do
  /// not end the line. '\0': every newline ends a line.
  explicit LineReader(const Input& input, char separator = '\0');

  /// Replaces `block` by the next lines, at least one. Returns false at the end of the file.
  bool next(LineBlock& block);

  /// Replaces `buffer` by the bytes of the last block, so that the text of the block stays valid as long as `buffer`.
  /// The memory of `buffer` is used for the next block.
  void take_buffer(std::vector<char>& buffer);

  [[nodiscard]] const std::string& path() const { return bytes_.path(); }

 private:
  [[nodiscard]] std::size_t find_end_of_lines();
  /// Removes a byte order mark at the start of the file. Returns false if the first bytes could be one and more are
  /// needed.
  bool skip_byte_order_mark();
  [[noreturn]] void throw_line_too_long() const;

  ByteStream bytes_;
  char separator_;
  std::size_t max_buffer_bytes_;      ///< max_line_bytes and the newline
  std::size_t initial_buffer_bytes_;  ///< Input::block_bytes, at most max_buffer_bytes_
  std::vector<char> buffer_;
  std::size_t begin_ = 0;       ///< first byte that next() has not returned
  std::size_t end_ = 0;         ///< end of the bytes in the buffer
  std::size_t searched_ = 0;    ///< the bytes before this position contain no end of a line
  bool inside_quotes_ = false;  ///< at `searched_`
  /// At `searched_`: a quote would open or continue a quoted cell. True at the start of a cell and after a closing
  /// quote, since "" is a quote inside a cell.
  bool quote_may_open_ = true;
  std::int64_t next_line_ = 1;
  bool at_end_ = false;        ///< the stream has no more bytes
  bool may_have_mark_ = true;  ///< skip_byte_order_mark() has not returned true
};

}  // namespace dyad
