#include "io/csv.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <dyad/error.h>

#include "base/name_index.h"
#include "base/text.h"

namespace dyad {
namespace {

/// Finds the first of two characters in a text that contains one of them. Compares eight bytes at a time: a byte of
/// `word ^ pattern` is zero where the character occurs, and the lowest zero byte gets the lowest high bit (Warren,
/// Hacker's Delight, section 6-1).
class DelimiterSearch {
 public:
  explicit DelimiterSearch(char separator)
      : separator_(separator), separators_(low_bits * static_cast<unsigned char>(separator)) {}

  const char* find(const char* begin, const char* end) const {
    if constexpr (std::endian::native == std::endian::little) {
      for (; end - begin >= word_bytes; begin += word_bytes) {
        std::uint64_t word = 0;
        std::memcpy(&word, begin, sizeof word);
        const std::uint64_t found = zero_bytes(word ^ separators_) | zero_bytes(word ^ newlines);
        if (found != 0) return begin + std::countr_zero(found) / 8;
      }
    }
    while (*begin != separator_ && *begin != '\n') ++begin;
    return begin;
  }

 private:
  static constexpr std::ptrdiff_t word_bytes = 8;
  static constexpr std::uint64_t low_bits = 0x0101010101010101;
  static constexpr std::uint64_t newlines = low_bits * '\n';
  static std::uint64_t zero_bytes(std::uint64_t word) { return (word - low_bits) & ~word & low_bits << 7; }

  char separator_;
  std::uint64_t separators_;
};

/// Parses rows from the front of a block of whole lines, which ends in a newline.
class RowScanner {
 public:
  RowScanner(const LineBlock& lines, char separator, const std::string& path)
      : at_(lines.text.data()),
        end_(lines.text.data() + lines.text.size()),
        line_(lines.first_line),
        separator_(separator),
        search_(separator),
        path_(path) {}

  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] LineBlock rest() const { return {{at_, static_cast<std::size_t>(end_ - at_)}, line_}; }
  [[nodiscard]] std::int64_t line() const { return line_; }

  /// Skips the next line if it is empty. Returns true if it was.
  bool skip_empty_line() {
    const int length = *at_ == '\n' ? 1 : *at_ == '\r' && at_[1] == '\n' ? 2 : 0;
    at_ += length;
    line_ += length > 0 ? 1 : 0;
    return length > 0;
  }

  /// Parses the next row and appends its first `max_cells` cells to `cells`. A quoted cell with quotes inside is
  /// appended to `unquoted`, and the cell refers to it. Returns the number of cells of the row.
  std::size_t parse_row(std::size_t max_cells, std::vector<std::string_view>& cells,
                        std::deque<std::string>& unquoted) {
    const std::int64_t first_line = line_;
    for (std::size_t count = 1;; ++count) {
      const std::size_t unquoted_count = unquoted.size();
      const std::string_view cell = *at_ == '"' ? parse_quoted_cell(unquoted, first_line) : parse_plain_cell();
      if (count <= max_cells)
        cells.push_back(cell);
      else if (unquoted.size() > unquoted_count)
        unquoted.pop_back();
      if (*at_++ == separator_) continue;
      ++line_;
      return count;
    }
  }

 private:
  std::string_view parse_plain_cell() {
    const char* begin = at_;
    const char* end = at_ = search_.find(at_, end_);
    if (*end == '\n' && end != begin && end[-1] == '\r') --end;
    while (begin != end && *begin == ' ') ++begin;
    while (begin != end && end[-1] == ' ') --end;
    return {begin, static_cast<std::size_t>(end - begin)};
  }

  std::string_view parse_quoted_cell(std::deque<std::string>& unquoted, std::int64_t first_line) {
    const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
    std::size_t begin = 1;
    std::string* text = nullptr;  // the part of the cell before `begin`, if that contains quotes
    std::string_view cell;
    while (true) {
      const std::size_t quote = rest.find('"', begin);
      if (quote == std::string_view::npos)
        throw DataError(
            path_, first_line, 0,
            "a quote is opened and never closed; add the closing \" (write a quote inside a quoted cell as \"\")");
      cell = rest.substr(begin, quote - begin);
      line_ += std::count(cell.begin(), cell.end(), '\n');
      begin = quote + 1;
      if (text == nullptr && rest[begin] == '"') text = &unquoted.emplace_back();
      if (text != nullptr) *text += cell;
      if (rest[begin] != '"') break;
      *text += '"';
      ++begin;
    }
    if (text != nullptr) cell = *text;
    if (rest[begin] == '\r' && rest[begin + 1] == '\n') ++begin;
    if (rest[begin] != separator_ && rest[begin] != '\n')
      throw DataError(path_, line_, 0,
                      "expected a separator or the end of the line after a closing quote (write a quote inside a "
                      "quoted cell as \"\")");
    at_ += begin;
    return cell;
  }

  const char* at_;
  const char* end_;
  std::int64_t line_;
  char separator_;
  DelimiterSearch search_;
  const std::string& path_;
};

}  // namespace

void parse_csv(LineBlock& lines, const std::string& path, char separator, std::size_t max_rows, CsvBlock& block) {
  RowScanner scanner(lines, separator, path);
  const std::size_t first_row = block.rows();
  while (!scanner.at_end() && block.rows() < max_rows) {
    if (scanner.skip_empty_line()) continue;
    lines = scanner.rest();
    try {
      const std::size_t count = scanner.parse_row(block.columns, block.cells, block.unquoted);
      if (count != block.columns)
        throw DataError(
            path, lines.first_line, 0,
            "expected " + std::to_string(block.columns) + " cells, as in the header, got " + std::to_string(count));
    } catch (const DataError&) {
      if (block.rows() == first_row) throw;
      block.cells.resize(block.rows() * block.columns);
      return;
    }
    block.lines.push_back(lines.first_line);
  }
  lines = scanner.rest();
}

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
  block.clear();
  block.unquoted.clear();
  while (block.rows() == 0) {
    if (pending_.text.empty() && !lines_.next(pending_)) return false;
    parse_csv(pending_, path(), separator_, std::numeric_limits<std::size_t>::max(), block);
  }
  return true;
}

bool CsvReader::next_lines(LineBlock& lines, std::vector<char>& buffer) {
  if (pending_.text.empty() && !lines_.next(pending_)) return false;
  lines = std::exchange(pending_, {});
  lines_.take_buffer(buffer);
  return true;
}

bool is_missing(std::string_view cell) {
  return cell.size() <= 3 && (cell.empty() || cell == "NA" || cell == "NaN" || cell == "nan" || cell == "NAN");
}

}  // namespace dyad
