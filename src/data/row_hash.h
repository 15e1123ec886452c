#pragma once

#include <bit>
#include <cstdint>

namespace dyad {

/// Hash of the entries of a row. It does not depend on their order and skips zeros, so that a row has the same hash in
/// dense and sparse layout. It does not depend on the machine or the version of the library.
class RowHash {
 public:
  /// Column of the target in add(). No feature has this number.
  static constexpr std::uint64_t target_column = ~std::uint64_t{1};

  void add(std::uint64_t column, double value) {
    if (value != 0) sum_ += mix(mix(column + 1) ^ std::bit_cast<std::uint64_t>(value));
  }
  [[nodiscard]] std::uint64_t value() const { return mix(sum_); }

 private:
  /// One step of SplitMix64 (Steele, Lea and Flood, 2014).
  static std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
  }

  std::uint64_t sum_ = 0;
};

}  // namespace dyad
