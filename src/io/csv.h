#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "io/line_reader.h"

namespace dyad {

/// Rows of cells as text, quotes taken off.
struct CsvBlock {
  std::size_t columns = 0;
  std::vector<std::string_view> cells;  ///< row after row; valid until the next call
  std::vector<std::int64_t> lines;      ///< of the file, one per row

  [[nodiscard]] std::size_t rows() const { return lines.size(); }
  [[nodiscard]] std::string_view cell(std::size_t row, std::size_t column) const {
    return cells[row * columns + column];
  }

  std::deque<std::string> unquoted;  ///< cells that do not stand in the file as they are
};

/// Comma- or tab-separated text with a header: quoted cells ("" is a quote, newlines may stand inside), CR LF or LF,
/// a byte order mark. Blanks around a cell without quotes do not count. Empty lines are skipped. Throws DataError for a
/// row with more or fewer cells than the header, an empty file, a name that occurs twice, a quote that is never closed.
class CsvReader {
 public:
  CsvReader(const Input& input, char separator);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& path() const { return lines_.path(); }

  /// False at the end.
  bool next(CsvBlock& block);

 private:
  void read_header(const ReadLimits& limits);

  LineReader lines_;
  char separator_;
  std::vector<std::string> names_;
  LineBlock waiting_;  ///< what the block with the header holds besides
};

/// Empty, NA and NaN cells stand for a value that is not known.
bool is_missing(std::string_view cell);

}  // namespace dyad
