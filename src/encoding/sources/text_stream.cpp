#include "encoding/sources/text_stream.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace dyad {

void TextChunk::clear() {
  file.reset();
  lines = parsed_lines = {};
  encoded.clear();
  cells.unquoted.clear();
  next_row = unparsed_rows = 0;
  failure = nullptr;
}

void TextChunk::unparse() {
  if (parsed_lines.text.empty()) return;
  lines = parsed_lines;
  unparsed_rows = std::exchange(next_row, 0);
  encoded.clear();
  failure = nullptr;
}

TextStream::TextStream(const std::vector<std::string>& paths)
    : may_wait_(std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
        std::error_code ignored;
        return path == "-" || !std::filesystem::is_regular_file(path, ignored);
      })) {}

bool TextStream::read(TextChunk& chunk) {
  chunk.clear();
  if (has_failed_) return false;
  try {
    return read_lines(chunk);
  } catch (const ReadingStopped&) {
    throw;
  } catch (...) {
    has_failed_ = true;
    chunk.lines = {};
    chunk.failure = std::current_exception();
    return true;
  }
}

void TextStream::parse(TextChunk& chunk, const BlockLimits& limits) const {
  chunk.encoded.clear();
  chunk.cells.unquoted.clear();
  chunk.parsed_lines = chunk.lines;
  try {
    parse_lines(chunk, limits);
  } catch (...) {
    chunk.failure = std::current_exception();
    chunk.lines.text = {};
  }
  chunk.next_row = std::min(std::exchange(chunk.unparsed_rows, 0), chunk.encoded.rows.count());
}

BlockLimits TextStream::begin(RowBlock<double>& block, const BlockLimits& limits) {
  block.clear();
  block_file_.reset();
  return limits;
}

bool TextStream::append(TextChunk& chunk, const BlockLimits& limits, RowBlock<double>& block) {
  if (block_file_ != nullptr && chunk.file != block_file_) return false;
  if (chunk.next_row < chunk.encoded.rows.count()) {
    block_file_ = chunk.file;
    append_rows(chunk, limits, block);
    block.file = chunk.file->path;
  }
  if (chunk.is_exhausted() && chunk.failure && !limits.are_reached_by(block)) std::rethrow_exception(chunk.failure);
  return true;
}

void TextStream::fill(RowBlock<double>& block, const BlockLimits& requested) {
  fit(requested);
  const BlockLimits limits = begin(block, requested);
  while (!limits.are_reached_by(block)) {
    TextChunk* chunk = read_ahead(0);
    if (chunk == nullptr) break;
    if (chunk->next_row == chunk->encoded.rows.count() && !chunk->lines.text.empty() &&
        (block_file_ == nullptr || chunk->file == block_file_))
      parse(*chunk, {limits.max_rows - block.count(), limits.max_entries - static_cast<Index>(block.values.size())});
    if (!append(*chunk, limits, block)) break;
    if (chunk->is_exhausted() && !chunk->failure) chunks_.pop_front();
  }
  if (block.count() > 0) finish(block);
}

TextChunk* TextStream::read_ahead(std::size_t number) {
  while (chunks_.size() <= number) {
    TextChunk chunk;
    if (!read(chunk)) return nullptr;
    chunks_.push_back(std::move(chunk));
  }
  return &chunks_[number];
}

}  // namespace dyad
