#include "io/line_reader.h"

#include <algorithm>
#include <cstring>

#include <dyad/error.h>

namespace dyad {
namespace {

/// U+FEFF in UTF-8.
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

LineReader::LineReader(const Input& input, char separator)
    : bytes_(input),
      separator_(separator),
      max_buffer_bytes_(static_cast<std::size_t>(input.limits.max_line_bytes) + 1),
      initial_buffer_bytes_(std::min(std::max<std::size_t>(input.block_bytes, 1), max_buffer_bytes_)),
      buffer_(initial_buffer_bytes_) {}

/// Searches the bytes from `searched_` on. Returns the end of the last complete line in them, or 0 if there is none.
std::size_t LineReader::find_end_of_lines() {
  const std::string_view unsearched(buffer_.data() + searched_, end_ - searched_);
  const std::size_t from = searched_;
  searched_ = end_;
  if (unsearched.empty()) return 0;
  const auto precedes_cell = [&](char c) { return c == separator_ || c == '\n'; };
  if (separator_ == '\0' || (!inside_quotes_ && unsearched.find('"') == std::string_view::npos)) {
    quote_may_open_ = precedes_cell(unsearched.back());
    const std::size_t newline = unsearched.rfind('\n');
    return newline == std::string_view::npos ? 0 : from + newline + 1;
  }
  std::size_t end_of_lines = 0;
  for (std::size_t i = 0; i < unsearched.size(); ++i) {
    const char c = unsearched[i];
    if (inside_quotes_) {
      inside_quotes_ = c != '"';
      quote_may_open_ = c == '"';  // a second quote would continue the cell: "" is a quote inside it
      continue;
    }
    if (c == '\n') end_of_lines = from + i + 1;
    inside_quotes_ = c == '"' && quote_may_open_;
    quote_may_open_ = precedes_cell(c);
  }
  return end_of_lines;
}

bool LineReader::skip_byte_order_mark() {
  const std::string_view start(buffer_.data(), std::min(end_, byte_order_mark.size()));
  if (byte_order_mark.starts_with(start) && start.size() < byte_order_mark.size() && !at_end_) return false;
  may_have_mark_ = false;
  if (start != byte_order_mark) return true;
  end_ -= start.size();
  std::memmove(buffer_.data(), buffer_.data() + start.size(), end_);
  return true;
}

void LineReader::throw_line_too_long() const {
  throw DataError(path(), next_line_, 0,
                  "the row is longer than ReadLimits::max_line_bytes = " + std::to_string(max_buffer_bytes_ - 1) +
                      (inside_quotes_ ? " (close the quote in the row, or raise the limit)" : " (raise the limit)"));
}

bool LineReader::next(LineBlock& block) {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  searched_ = 0;
  inside_quotes_ = false;
  quote_may_open_ = true;
  while ((may_have_mark_ && !skip_byte_order_mark()) || (begin_ = find_end_of_lines()) == 0) {
    if (at_end_) {
      if (end_ == 0) return false;
      buffer_.resize(std::max(buffer_.size(), end_ + 1));
      if (buffer_[end_ - 1] != '\n') buffer_[end_++] = '\n';
      begin_ = end_;
      break;
    }
    if (end_ == buffer_.size()) {
      if (end_ >= max_buffer_bytes_) throw_line_too_long();
      buffer_.resize(std::min(2 * buffer_.size(), max_buffer_bytes_));
    }
    const std::size_t byte_count = bytes_.read_some({buffer_.data() + end_, buffer_.size() - end_});
    at_end_ = byte_count == 0;
    end_ += byte_count;
  }
  block.text = {buffer_.data(), begin_};
  block.first_line = next_line_;
  next_line_ += std::count(block.text.begin(), block.text.end(), '\n');
  return true;
}

void LineReader::take_buffer(std::vector<char>& buffer) {
  buffer.resize(std::max(initial_buffer_bytes_, end_ - begin_));
  std::memcpy(buffer.data(), buffer_.data() + begin_, end_ - begin_);
  buffer_.swap(buffer);
  end_ -= begin_;
  begin_ = 0;
}

}  // namespace dyad
