#pragma once

#include <cstdint>
#include <string_view>

namespace dyad {

/// Hash of a text that does not depend on the machine or the version of the library, because model files depend on it.
/// 64-bit FNV-1a, followed by the finalizer of MurmurHash3 (fmix64). The seed, multiplied by 2^64 / golden ratio,
/// modifies the initial value of FNV-1a.
inline std::uint64_t stable_hash(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ (seed * 0x9e3779b97f4a7c15U);
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdU;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53U;
  return hash ^ (hash >> 33);
}

}  // namespace dyad
