#include "base/random.h"

#include <cmath>

namespace dyad {
namespace {

// SplitMix64, the recommended way to seed xoshiro.
std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

double bell(double x) { return std::exp(-0.5 * x * x); }

/// The ziggurat of Marsaglia and Tsang (2000): 256 layers of equal area under exp(-x^2/2).
struct Ziggurat {
  static constexpr int layers = 256;
  static constexpr double tail = 3.6541528853610088;   // where the lowest layer meets the tail
  static constexpr double area = 0.00492867323399141;  // of each layer
  double edge[layers + 1];                             // right edge of layer i; layer 0 includes the tail
  double height[layers + 1];                           // bell(edge[i])

  Ziggurat() {
    edge[0] = area / bell(tail);
    edge[1] = tail;
    for (int i = 2; i < layers; ++i) edge[i] = std::sqrt(-2 * std::log(area / edge[i - 1] + bell(edge[i - 1])));
    edge[layers] = 0;
    for (int i = 0; i <= layers; ++i) height[i] = bell(edge[i]);
  }
};

/// Made when it is first needed, which may be before main.
const Ziggurat& the_ziggurat() {
  static const Ziggurat tables;
  return tables;
}

}  // namespace

Random::Random(std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t mixed = seed;
  mixed = split_mix(mixed) ^ (stream * 0xd1342543de82ef95U);
  for (std::uint64_t& word : state_) word = split_mix(mixed);
}

double Random::normal() {
  const Ziggurat& ziggurat = the_ziggurat();
  while (true) {
    const std::uint64_t random = bits();
    const auto layer = static_cast<int>(random & 0xff);
    const double side = static_cast<double>(static_cast<std::int64_t>(random) >> 11) * 0x1p-52;  // in [-1, 1)
    const double x = side * ziggurat.edge[layer];
    if (std::abs(x) < ziggurat.edge[layer + 1]) return x;
    if (layer == 0) {
      double beyond = 0;
      double drop = 0;
      do {
        beyond = -std::log(uniform()) / Ziggurat::tail;
        drop = -std::log(uniform());
      } while (2 * drop < beyond * beyond);
      return side < 0 ? -Ziggurat::tail - beyond : Ziggurat::tail + beyond;
    }
    const double low = ziggurat.height[layer];
    const double high = ziggurat.height[layer + 1];
    if (low + uniform() * (high - low) < bell(x)) return x;
  }
}

}  // namespace dyad
