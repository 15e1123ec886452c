#pragma once

#include <bit>
#include <cstdint>

namespace dyad {

/// Streams that are not those of a row.
inline constexpr std::uint64_t start_stream = ~std::uint64_t{0};
inline constexpr std::uint64_t truth_stream = start_stream - 1;

/// xoshiro256++ of Blackman and Vigna. Streams are told apart by (seed, stream), so that row i of a planted problem is
/// the same whoever makes it, in whatever order.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream);

  std::uint64_t bits() {
    const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

  /// Standard normal.
  double normal();

 private:
  std::uint64_t state_[4];
};

}  // namespace dyad
