#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/line_reader.h"

namespace dyad {

/// A block of csv rows as text. Quoted cells are stored without quotes.
struct CsvBlock {
  std::size_t columns = 0;
  std::vector<std::string_view> cells;  ///< row-major; valid as long as the text of the lines and `unquoted`
  std::vector<std::int64_t> lines;      ///< line number in the file where each row starts, from 1

  [[nodiscard]] std::size_t rows() const { return lines.size(); }
  [[nodiscard]] std::string_view cell(std::size_t row, std::size_t column) const {
    return cells[row * columns + column];
  }

  std::deque<std::string> unquoted;  ///< texts of cells with quotes inside, which `cells` refers to

  /// Removes all rows. `unquoted` is kept.
  void clear() {
    cells.clear();
    lines.clear();
  }
};

/// Parses rows from the front of `lines` and appends them to `block` until it has `max_rows` rows or `lines` is empty.
/// Skips empty lines. Each row must have block.columns cells; further cells are not stored. Throws DataError as
/// CsvReader for an invalid row at the front of `lines`. An invalid row after others ends the call and stays at the
/// front.
void parse_csv(LineBlock& lines, const std::string& path, char separator, std::size_t max_rows, CsvBlock& block);

/// Reads comma- or tab-separated text with a header, in the dialect of RFC 4180: a cell in double quotes may contain
/// separators and newlines, and "" stands for one quote; lines end in CR LF or LF. Skips a byte order mark,
/// empty lines, and spaces around a cell without quotes. Throws DataError for an empty file, a column name that
/// occurs twice, a row with more or fewer cells than the header, and a quote that is not closed. Not thread-safe.
class CsvReader {
 public:
  CsvReader(const Input& input, char separator);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& path() const { return lines_.path(); }

  /// Replaces `block` by the next rows, at least one, which are valid until the next call. Returns false at the end of
  /// the file.
  bool next(CsvBlock& block);

  /// Replaces `lines` by the next lines, which need not contain a row. Their text is valid as long as `buffer`, whose
  /// content is replaced. Returns false at the end of the file.
  bool next_lines(LineBlock& lines, std::vector<char>& buffer);

 private:
  void read_header(const ReadLimits& limits);

  LineReader lines_;
  char separator_;
  std::vector<std::string> names_;
  LineBlock pending_;  ///< lines that were read and not parsed yet; initially those after the header
};

/// True for the cells of a missing value: empty, NA, NaN, nan and NAN.
bool is_missing(std::string_view cell);

}  // namespace dyad
