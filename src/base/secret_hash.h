#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace dyad {

/// A hash with two numbers in it that are drawn anew in every process: whoever makes names cannot make them collide.
class SecretHash {
 public:
  [[nodiscard]] static std::uint64_t of(std::uint64_t word) {
    const Secret& own = secret();
    return folded(folded(word ^ own.first, own.second) ^ own.second, own.first);
  }

  [[nodiscard]] static std::uint64_t of(std::string_view text) {
    constexpr std::size_t width = sizeof(std::uint64_t);
    std::uint64_t hash = text.size();
    for (; text.size() > width; text.remove_prefix(width)) hash = of(hash ^ word_of(text, width));
    return of(hash ^ word_of(text, text.size()));
  }

 private:
  struct Secret {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  static const Secret& secret() {
    static const Secret drawn = [] {
      std::random_device device;
      const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
      return Secret{draw() | 1, draw() | 1};
    }();
    return drawn;
  }

  static std::uint64_t word_of(std::string_view text, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), bytes);
    return word;
  }

  /// Both halves of the product, one upon the other.
  static std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

}  // namespace dyad
