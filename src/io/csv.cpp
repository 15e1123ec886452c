#include "io/csv.h"

#include <algorithm>

#include <dyad/error.h>

#include "base/name_index.h"
#include "base/text.h"

namespace dyad {
namespace {

/// Parses rows from the front of a block of whole lines.
class RowScanner {
 public:
  RowScanner(const LineBlock& lines, char separator, const std::string& path)
      : rest_(lines.text), line_(lines.first_line), separator_(separator), path_(path) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] LineBlock rest() const { return {rest_, line_}; }
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Skips the next line if it is empty. Returns true if it was.
  bool skip_empty_line() {
    const std::size_t length = rest_.starts_with("\r\n") ? 2 : rest_.starts_with('\n') ? 1 : 0;
    rest_.remove_prefix(length);
    line_ += length > 0 ? 1 : 0;
    return length > 0;
  }

  /// Parses the next row and appends its first `max_cells` cells to `cells`. The text of a quoted cell is appended to
  /// `unquoted`, and the cell refers to it. Returns the number of cells of the row.
  std::size_t parse_row(std::size_t max_cells, std::vector<std::string_view>& cells,
                        std::deque<std::string>& unquoted) {
    const std::int64_t first_line = line_;
    for (std::size_t count = 1;; ++count) {
      const bool is_quoted = rest_.starts_with('"');
      const std::string_view cell = is_quoted ? parse_quoted_cell(unquoted, first_line) : parse_plain_cell();
      if (count <= max_cells)
        cells.push_back(cell);
      else if (is_quoted)
        unquoted.pop_back();
      const char delimiter = rest_.front();
      rest_.remove_prefix(1);
      if (delimiter == separator_) continue;
      ++line_;
      return count;
    }
  }

 private:
  std::string_view parse_plain_cell() {
    const char* begin = rest_.data();  // the block ends in a newline, which ends the loop below
    const char* end = begin;
    while (*end != separator_ && *end != '\n') ++end;
    std::string_view cell(begin, static_cast<std::size_t>(end - begin));
    if (*end == '\n' && cell.ends_with('\r')) cell.remove_suffix(1);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ')) cell.remove_suffix(1);
    rest_.remove_prefix(static_cast<std::size_t>(end - begin));
    return cell;
  }

  std::string_view parse_quoted_cell(std::deque<std::string>& unquoted, std::int64_t first_line) {
    std::string text;
    std::size_t at = 1;
    while (true) {
      const std::size_t quote = rest_.find('"', at);
      if (quote == std::string_view::npos)
        throw DataError(
            path_, first_line, 0,
            "a quote is opened and never closed; add the closing \" (write a quote inside a quoted cell as \"\")");
      line_ += std::count(rest_.begin() + static_cast<std::ptrdiff_t>(at),
                          rest_.begin() + static_cast<std::ptrdiff_t>(quote), '\n');
      text += rest_.substr(at, quote - at);
      at = quote + 1;
      if (rest_[at] != '"') break;
      text += '"';
      ++at;
    }
    if (rest_[at] == '\r' && rest_[at + 1] == '\n') ++at;
    if (rest_[at] != separator_ && rest_[at] != '\n')
      throw DataError(path_, line_, 0,
                      "expected a separator or the end of the line after a closing quote (write a quote inside a "
                      "quoted cell as \"\")");
    rest_.remove_prefix(at);
    return unquoted.emplace_back(std::move(text));
  }

  std::string_view rest_;
  std::int64_t line_;
  char separator_;
  const std::string& path_;
};

}  // namespace

CsvReader::CsvReader(const Input& input, char separator) : lines_(input, separator), separator_(separator) {
  read_header(input.limits);
}

void CsvReader::read_header(const ReadLimits& limits) {
  if (!lines_.next(pending_)) throw DataError(path(), 0, 0, "the file is empty, expected a header with column names");
  RowScanner scanner(pending_, separator_, lines_.path());
  std::vector<std::string_view> cells;
  std::deque<std::string> unquoted;
  const auto max_columns = static_cast<std::size_t>(limits.max_columns);
  if (const std::size_t count = scanner.parse_row(max_columns, cells, unquoted); count > max_columns)
    throw DataError(path(), 1, 0,
                    "the header has " + std::to_string(count) + " columns, more than ReadLimits::max_columns = " +
                        std::to_string(max_columns) + " (raise the limit, or remove columns)");
  for (const std::string_view cell : cells) {
    if (cell.find('\0') != std::string_view::npos)
      throw DataError(path(), 1, 0,
                      "the header contains a zero byte: expected text with column names, got a binary file");
    names_.push_back(escape_invalid_utf8(cell));
  }
  pending_ = scanner.rest();
  NameIndex seen;
  for (std::size_t column = 0; column < names_.size(); ++column)
    if (!seen.add(names_[column]))
      throw DataError(path(), 1, static_cast<std::int64_t>(column) + 1,
                      "the column name " + quote_text(names_[column]) + " occurs twice; rename one of the columns");
}

bool CsvReader::next(CsvBlock& block) {
  block.columns = names_.size();
  block.cells.clear();
  block.lines.clear();
  block.unquoted.clear();
  while (block.rows() == 0) {
    if (pending_.text.empty() && !lines_.next(pending_)) return false;
    RowScanner scanner(pending_, separator_, lines_.path());
    while (!scanner.at_end()) {
      if (scanner.skip_empty_line()) continue;
      block.lines.push_back(scanner.line());
      const std::size_t count = scanner.parse_row(block.columns, block.cells, block.unquoted);
      if (count != block.columns)
        throw DataError(
            path(), block.lines.back(), 0,
            "expected " + std::to_string(block.columns) + " cells, as in the header, got " + std::to_string(count));
    }
    pending_.text = {};
  }
  return true;
}

bool is_missing(std::string_view cell) {
  return cell.size() <= 3 && (cell.empty() || cell == "NA" || cell == "NaN" || cell == "nan" || cell == "NAN");
}

}  // namespace dyad
