#pragma once

#include <cstdint>

#include <dyad/rows.h>

#include "base/random.h"

namespace dyad {

/// What a random number of the sampler is used for. The random numbers of a draw depend only on the seed, the sweep,
/// the purpose and the index of the feature, row block or group. Results therefore depend neither on the number of
/// threads nor on the order of the draws.
enum class DrawPurpose : std::uint64_t {
  start,
  parameters,
  feature_noise,
  noise_shape,
  hyperprior,
  noise,
  intercept,
  rows,
  probes
};

/// Generator of the random numbers of one draw. Requires sweep < 2^24 and index < 2^36.
inline Random draw_random(std::uint64_t seed, Index sweep, DrawPurpose purpose, Index index) {
  return {seed, static_cast<std::uint64_t>(sweep) << 40 | static_cast<std::uint64_t>(purpose) << 36 |
                    static_cast<std::uint64_t>(index)};
}

/// Exponential distribution with mean 1.
double draw_exponential(Random& random);

/// Gamma distribution with this shape and rate 1, by the method of Marsaglia and Tsang (2000, "A simple method for
/// generating gamma variables").
double draw_gamma(Random& random, double shape);

/// Polya-Gamma distribution PG(weight, tilt) of Polson, Scott and Windle (2013, "Bayesian inference for logistic models
/// using Polya-Gamma latent variables"). Exact for integer weights up to 16. The fractional part of a weight uses a
/// truncated series with the exact mean, and larger weights use the normal approximation with exact moments.
double draw_polya_gamma(Random& random, double weight, double tilt);

/// Mean and variance of PG(weight, tilt).
double polya_gamma_mean(double weight, double tilt);
double polya_gamma_variance(double weight, double tilt);

}  // namespace dyad
