#include "io/libsvm.h"

#include <cmath>
#include <limits>

#include <dyad/error.h>

#include "base/text.h"
#include "io/parse_number.h"

namespace dyad {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool ends_line(char c) { return c == '\n' || c == '#'; }

/// Cursor in a block of whole lines. Every loop stops at a newline, with which the block ends.
class LineScanner {
 public:
  LineScanner(const LineBlock& lines, const std::string& path)
      : position_(lines.text.data()),
        end_(lines.text.data() + lines.text.size()),
        line_begin_(position_),
        line_(lines.first_line),
        path_(path) {}

  [[nodiscard]] bool at_end() const { return position_ == end_; }
  [[nodiscard]] std::int64_t line() const { return line_; }
  [[nodiscard]] LineBlock rest() const { return {{position_, static_cast<std::size_t>(end_ - position_)}, line_}; }
  [[nodiscard]] char peek() const { return *position_; }

  void skip_blanks() {
    while (is_blank(*position_)) ++position_;
  }

  void next_line() {
    while (*position_ != '\n') ++position_;
    line_begin_ = ++position_;
    ++line_;
  }

  /// Parses a finite number. `expected` describes it in the message for text that is not a number.
  double parse_finite_number(const char* expected) {
    double value = 0;
    const char* stop = parse_number(position_, end_, value);
    if (stop == nullptr) fail(expected);
    if (!std::isfinite(value)) fail("a finite number");
    position_ = stop;
    return value;
  }

  /// Parses the value of an entry, at most `max_abs_value` in magnitude.
  double parse_value() {
    const char* begin = position_;
    const double value = parse_finite_number("a number after the colon");
    if (std::abs(value) <= max_abs_value) return value;
    position_ = begin;
    fail("a number up to 1e70 in size (rescale this feature)");
  }

  /// Parses `index:`. The index must exceed `previous`.
  std::int32_t parse_index(std::int64_t previous) {
    // Indices and the number of features, which is the largest index + 1, are stored as signed 32-bit integers.
    constexpr std::int64_t index_limit = std::numeric_limits<std::int32_t>::max();
    if (*position_ == '-') fail("an index of at least 0");
    std::int64_t value = 0;
    const char* stop = position_;
    for (; *stop >= '0' && *stop <= '9'; ++stop)
      if ((value = 10 * value + (*stop - '0')) >= index_limit) fail("an index below 2^31 - 1");
    if (stop == position_ || *stop != ':') fail("index:value");
    if (value <= previous) fail("an index above " + std::to_string(previous) + " (indices must rise along a row)");
    position_ = stop + 1;
    return static_cast<std::int32_t>(value);
  }

  void require_end_of_entry() {
    if (!is_blank(*position_) && !ends_line(*position_)) fail("a blank or the end of the line");
  }

  /// Throws DataError at the current position.
  [[noreturn]] void fail(const std::string& expected) const {
    const char* stop = position_;
    while (!is_blank(*stop) && *stop != '\n') ++stop;
    const std::string got =
        stop == position_ ? "the end of the line" : quote_text({position_, static_cast<std::size_t>(stop - position_)});
    throw DataError(path_, line_, position_ - line_begin_ + 1, "expected " + expected + ", got " + got);
  }

 private:
  const char* position_;
  const char* end_;
  const char* line_begin_;
  std::int64_t line_;
  const std::string& path_;
};

}  // namespace

void parse_libsvm(LineBlock& lines, const std::string& path, const BlockLimits& limits, RowBlock<double>& block) {
  LineScanner scanner(lines, path);
  while (!scanner.at_end() && !limits.are_reached_by(block)) {
    scanner.skip_blanks();
    if (!ends_line(scanner.peek())) {
      block.targets.push_back(scanner.parse_finite_number("a number as the target"));
      scanner.require_end_of_entry();
      std::int64_t previous = -1;
      for (scanner.skip_blanks(); !ends_line(scanner.peek()); scanner.skip_blanks()) {
        previous = scanner.parse_index(previous);
        block.columns.push_back(static_cast<std::int32_t>(previous));
        block.values.push_back(scanner.parse_value());
        scanner.require_end_of_entry();
      }
      block.offsets.push_back(static_cast<Index>(block.values.size()));
      block.lines.push_back(scanner.line());
    }
    scanner.next_line();
  }
  lines = scanner.rest();
}

}  // namespace dyad
