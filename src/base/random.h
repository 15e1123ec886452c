#pragma once

#include <bit>
#include <cstdint>

namespace dyad {

/// Streams of Random that are not used for rows. Row i of a planted problem (simulated data with known parameters,
/// dyad/simulate.h) uses stream i, so that these streams are at the upper end of the range. Callers that need
/// further streams use `start_stream - n`, where n can depend on the feature or on the number of features.
inline constexpr std::uint64_t start_stream = ~std::uint64_t{0};  ///< initial parameters of a solver
inline constexpr std::uint64_t truth_stream = start_stream - 1;   ///< true parameters of a planted problem

/// Random number generator xoshiro256++ (Blackman and Vigna, 2021, "Scrambled linear pseudorandom number generators").
/// Generators with different (seed, stream) have statistically unrelated sequences. Row i of a planted problem has its
/// own stream and therefore does not depend on the order in which rows are generated. Not thread-safe.
class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t stream);

  /// 64 random bits.
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

  /// Uniform in the open interval (0, 1).
  double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; }

  /// Standard normal.
  double normal();

 private:
  std::uint64_t state_[4];
};

}  // namespace dyad
