#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace dyad {

/// Append-only storage of texts without an allocation per text. Stored texts do not move. One thread may call add()
/// while others read texts, if the positions are passed on by operations that synchronize.
class TextStore {
 public:
  /// Upper bound of the positions, 2^40: 1 TB of text.
  static constexpr int position_bits = 40;

  /// Appends a text and returns its position.
  std::uint64_t add(std::string_view text) {
    constexpr std::size_t max_length_bytes = 10;  // of a 64-bit length in groups of 7 bits
    const std::size_t needed = text.size() + max_length_bytes;
    while (end_ + needed > segment_begin(segment_ + 1)) end_ = segment_begin(++segment_);
    std::unique_ptr<char[]>& segment = segments_[segment_];
    if (!segment) segment = std::make_unique_for_overwrite<char[]>(segment_bytes(segment_));
    char* at = segment.get() + (end_ - segment_begin(segment_));
    const std::uint64_t position = end_;
    std::uint64_t length = text.size();
    for (; length >= continuation; length >>= 7) *at++ = static_cast<char>(length | continuation), ++end_;
    *at++ = static_cast<char>(length);
    std::copy(text.begin(), text.end(), at);
    end_ += 1 + text.size();
    return position;
  }

  /// The text at a position that add() returned.
  [[nodiscard]] std::string_view at(std::uint64_t position) const {
    const std::size_t segment = static_cast<std::size_t>(std::bit_width(position / first_segment_bytes + 1)) - 1;
    const char* at = segments_[segment].get() + (position - segment_begin(segment));
    std::uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(*at++));
      length |= (byte & (continuation - 1)) << shift;
      if (byte < continuation) return {at, static_cast<std::size_t>(length)};
    }
  }

 private:
  /// Size of the first segment; each further one has twice the size. Bounds the memory of a small store.
  static constexpr std::uint64_t first_segment_bytes = 256;
  static constexpr std::uint64_t continuation = 0x80;  ///< bit of a length byte that another one follows
  static std::uint64_t segment_bytes(std::size_t segment) { return first_segment_bytes << segment; }
  static std::uint64_t segment_begin(std::size_t segment) { return segment_bytes(segment) - first_segment_bytes; }

  std::array<std::unique_ptr<char[]>, position_bits> segments_;
  std::size_t segment_ = 0;  ///< the segment of the last text
  std::uint64_t end_ = 0;    ///< position after the last text
};

}  // namespace dyad
