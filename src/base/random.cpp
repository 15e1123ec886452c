#include "base/random.h"

#include <cmath>

namespace dyad {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014), which the authors of xoshiro recommend for seeding.
std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Normal density without its normalization.
double gaussian(double x) { return std::exp(-0.5 * x * x); }

/// Tables of the ziggurat method (Marsaglia and Tsang, 2000, "The ziggurat method for generating random variables"):
/// `layers` layers of equal area under exp(-x^2/2). `tail_start` and `layer_area` are the solution for 256 layers.
struct Ziggurat {
  static constexpr int layers = 256;
  static constexpr double tail_start = 3.6541528853610088;   // right edge of the lowest rectangle
  static constexpr double layer_area = 0.00492867323399141;  // layer 0 consists of a rectangle and the tail
  double edge[layers + 1];    // right edge of layer i; edge[0] is the width of a rectangle with the area of layer 0
  double height[layers + 1];  // gaussian(edge[i])

  Ziggurat() {
    edge[0] = layer_area / gaussian(tail_start);
    edge[1] = tail_start;
    for (int i = 2; i < layers; ++i)
      edge[i] = std::sqrt(-2 * std::log(layer_area / edge[i - 1] + gaussian(edge[i - 1])));
    edge[layers] = 0;
    for (int i = 0; i <= layers; ++i) height[i] = gaussian(edge[i]);
  }
};

/// Initialized on first use, because static objects of other files may draw numbers before main().
const Ziggurat& ziggurat_tables() {
  static const Ziggurat tables;
  return tables;
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  // The multiplier (Steele and Vigna, 2021, for 64-bit linear congruential generators) spreads the bits of `stream`.
  std::uint64_t mixed = seed;
  mixed = split_mix(mixed) ^ (stream * 0xd1342543de82ef95U);
  for (std::uint64_t& word : state_) word = split_mix(mixed);
}

double Random::normal() {
  const Ziggurat& ziggurat = ziggurat_tables();
  while (true) {
    const std::uint64_t random = bits();
    const auto layer = static_cast<int>(random & 0xff);
    const double relative = static_cast<double>(static_cast<std::int64_t>(random) >> 11) * 0x1p-52;  // in [-1, 1)
    const double x = relative * ziggurat.edge[layer];
    if (std::abs(x) < ziggurat.edge[layer + 1]) return x;
    if (layer == 0) {  // tail: rejection sampling from an exponential distribution (Marsaglia, 1964)
      double excess = 0;
      double exponential = 0;
      do {
        excess = -std::log(uniform()) / Ziggurat::tail_start;
        exponential = -std::log(uniform());
      } while (2 * exponential < excess * excess);
      return relative < 0 ? -Ziggurat::tail_start - excess : Ziggurat::tail_start + excess;
    }
    const double low = ziggurat.height[layer];
    const double high = ziggurat.height[layer + 1];
    if (low + uniform() * (high - low) < gaussian(x)) return x;
  }
}

}  // namespace dyad
