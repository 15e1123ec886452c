#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>

namespace dyad {

/// Hash function with a random key that is drawn once per process, so that input files cannot contain names that are
/// chosen to collide. Mixes bits with the folded 128-bit product that wyhash also uses. Hashes differ between
/// processes; use stable_hash() for values that are stored.
class KeyedHash {
 public:
  [[nodiscard]] static std::uint64_t hash(std::uint64_t word) {
    const Key& key = process_key();
    return fold_product(fold_product(word ^ key.first, key.second) ^ key.second, key.first);
  }

  [[nodiscard]] static std::uint64_t hash(std::string_view text) {
    constexpr std::size_t word_bytes = sizeof(std::uint64_t);
    std::uint64_t state = text.size();
    for (; text.size() > word_bytes; text.remove_prefix(word_bytes)) state = hash(state ^ word_of(text, word_bytes));
    return hash(state ^ word_of(text, text.size()));
  }

 private:
  struct Key {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
  };

  static const Key& process_key() {
    static const Key key = [] {
      std::random_device device;
      const auto draw = [&] { return std::uint64_t{device()} << 32 | device(); };
      return Key{draw() | 1, draw() | 1};  // odd, because a product with a key of 0 would be 0 for every word
    }();
    return key;
  }

  /// The first `bytes` <= 8 bytes of the text, padded with zeros.
  static std::uint64_t word_of(std::string_view text, std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), bytes);
    return word;
  }

  /// Exclusive or of the upper and lower 64 bits of the product a b.
  static std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
};

}  // namespace dyad
