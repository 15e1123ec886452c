#include "source/lines.h"

#include <algorithm>
#include <cstring>

#include <dyad/data_error.h>

namespace dyad {
namespace {

constexpr std::size_t usual_block = std::size_t{1} << 20;
constexpr std::size_t longest_line = std::size_t{1} << 30;

}  // namespace

LineReader::LineReader(const std::string& path) : bytes_(path), buffer_(usual_block) {}

bool LineReader::next(LineBlock& block) {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  std::size_t searched = 0;
  while (true) {
    const std::string_view unsearched(buffer_.data() + searched, end_ - searched);
    if (const std::size_t newline = unsearched.rfind('\n'); newline != std::string_view::npos) {
      begin_ = searched + newline + 1;
      break;
    }
    searched = end_;
    if (ended_) {
      if (end_ == 0) return false;
      buffer_.resize(std::max(buffer_.size(), end_ + 1));
      buffer_[end_++] = '\n';
      continue;
    }
    if (end_ == buffer_.size()) {
      if (end_ >= longest_line) throw DataError(path(), next_line_, 0, "a line of more than 1 GB, expected text");
      buffer_.resize(2 * buffer_.size());
    }
    const std::size_t got = bytes_.read_some({buffer_.data() + end_, buffer_.size() - end_});
    ended_ = got == 0;
    end_ += got;
  }
  block.text = {buffer_.data(), begin_};
  block.first_line = next_line_;
  next_line_ += std::count(block.text.begin(), block.text.end(), '\n');
  return true;
}

}  // namespace dyad
