#include "solvers/sampling/random_draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace dyad {
namespace {

using std::numbers::pi;

/// Largest integer weight that is drawn as a sum. The skewness of the sum of 16 draws is a quarter of that of one.
constexpr double max_summed_weight = 16;
/// Terms of the series for fractional weights. The remainder has less than 1e-6 of the variance.
constexpr int series_terms = 64;

double standard_normal_cdf(double x) { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

/// Point at which the two series of the density of J*(1, z) are exchanged (Devroye 2009, "On exact simulation
/// algorithms for some distributions related to Jacobi theta functions"); any point between 0.5 and 0.9 is valid.
constexpr double series_border = 0.64;

/// a_n(x) / a_0(x) for the coefficients of the alternating series of the density of J*(1, 0).
double coefficient_ratio(int n, double x) {
  const double exponent = x > series_border ? pi * pi * x / 2 : 2 / x;
  return (2 * n + 1) * std::exp(-(n * n + n) * exponent);
}

/// Upper bound of a_1(x) / a_0(x): its value at the border is 3 exp(-4 / 0.64) = 0.00579 on both sides, the maximum.
constexpr double max_first_ratio = 0.006;

/// Probability that a proposal for J*(1, z) is above the border. It decreases in z.
double tail_share(double z) {
  const double rate = pi * pi / 8 + z * z / 2;
  const double tail_mass = pi / (2 * rate) * std::exp(-rate * series_border);
  // Mass below the border: 2 exp(-z) times the distribution function of the inverse Gaussian. The second term
  // underflows for large z before its factor overflows.
  constexpr double max_second_term_argument = 30;
  const double root = std::sqrt(1 / series_border);
  double body_mass = 2 * std::exp(-z) * standard_normal_cdf(root * (series_border * z - 1));
  if (z < max_second_term_argument) body_mass += 2 * std::exp(z) * standard_normal_cdf(-root * (series_border * z + 1));
  return tail_mass / (tail_mass + body_mass);
}

/// Returns whether uniform < tail_share(z). The values at the nodes on both sides of z are bounds, so that the function
/// is evaluated only if `uniform` lies between them.
bool is_in_tail(double uniform, double z) {
  constexpr std::size_t nodes_per_unit = 64;
  constexpr std::size_t max_z = 8;
  static const std::vector<double> shares = [] {
    std::vector<double> values;
    for (std::size_t i = 0; i <= max_z * nodes_per_unit; ++i)
      values.push_back(tail_share(static_cast<double>(i) / nodes_per_unit));
    return values;
  }();
  if (z < max_z) {
    const auto node = static_cast<std::size_t>(z * nodes_per_unit);
    if (uniform < shares[node + 1]) return true;
    if (uniform > shares[node]) return false;
  }
  return uniform < tail_share(z);
}

/// Inverse Gaussian distribution with mean 1/z and shape 1, truncated to x < series_border.
double draw_truncated_inverse_gaussian(Random& random, double z) {
  if (z < 1 / series_border) {  // rejection from the distribution for z = 0
    while (true) {
      double e1 = 0;
      double e2 = 0;
      do {
        e1 = draw_exponential(random);
        e2 = draw_exponential(random);
      } while (e1 * e1 > 2 * e2 / series_border);
      const double root = 1 + series_border * e1;
      const double x = series_border / (root * root);
      const double exponent = 0.5 * z * z * x;
      const double uniform = random.uniform();
      if (uniform < 1 - exponent || uniform < std::exp(-exponent)) return x;  // 1 - t <= exp(-t)
    }
  }
  const double mean = 1 / z;
  while (true) {  // method of Michael, Schucany and Haas (1976)
    const double normal = random.normal();
    const double y = normal * normal;
    double x = mean + 0.5 * mean * mean * y - 0.5 * mean * std::sqrt(4 * mean * y + mean * mean * y * y);
    if (random.uniform() > mean / (mean + x)) x = mean * mean / x;
    if (x < series_border) return x;
  }
}

/// PG(1, tilt) by Devroye's rejection sampler with an alternating series.
double draw_unit_polya_gamma(Random& random, double tilt) {
  const double z = std::abs(tilt) / 2;
  const double rate = pi * pi / 8 + z * z / 2;
  while (true) {
    const double x = is_in_tail(random.uniform(), z) ? series_border + draw_exponential(random) / rate
                                                     : draw_truncated_inverse_gaussian(random, z);
    const double threshold = random.uniform();
    if (threshold < 1 - max_first_ratio) return x / 4;
    double sum = 1;
    for (int n = 1;; ++n) {
      if (n % 2 == 1) {
        sum -= coefficient_ratio(n, x);
        if (threshold <= sum) return x / 4;
      } else {
        sum += coefficient_ratio(n, x);
        if (threshold > sum) break;
      }
    }
  }
}

/// PG(weight, tilt) = 1 / (2 pi^2) sum_k g_k / ((k - 1/2)^2 + tilt^2 / (4 pi^2)), g_k ~ Gamma(weight). The remainder of
/// the series is replaced by its mean.
double draw_fractional_polya_gamma(Random& random, double weight, double tilt) {
  const double shift = tilt * tilt / (4 * pi * pi);
  double sum = 0;
  double mean = 0;
  for (int k = 0; k < series_terms; ++k) {
    const double scale = 1 / ((k + 0.5) * (k + 0.5) + shift) / (2 * pi * pi);
    sum += draw_gamma(random, weight) * scale;
    mean += weight * scale;
  }
  return sum + std::max(0.0, polya_gamma_mean(weight, tilt) - mean);
}

}  // namespace

double draw_exponential(Random& random) { return -std::log(random.uniform()); }

double draw_gamma(Random& random, double shape) {
  if (shape < 1) return draw_gamma(random, shape + 1) * std::pow(random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double polya_gamma_mean(double weight, double tilt) {
  constexpr double small_tilt = 1e-4;  // the series error is tilt^2 / 12, below 1e-9
  const double z = std::abs(tilt);
  return z < small_tilt ? weight / 4 : weight * std::tanh(z / 2) / (2 * z);
}

double polya_gamma_variance(double weight, double tilt) {
  constexpr double small_tilt = 0.05;  // below it, sinh z - z cancels; the error of the series is of order z^2
  const double z = std::abs(tilt);
  if (z < small_tilt) return weight / 24 * (1 - z * z / 5);
  // (sinh z - z) / cosh^2(z/2) = 2 (sinh z - z) / (1 + cosh z), evaluated without overflow.
  const double e = std::exp(-z);
  return weight / (4 * z * z * z) * 2 * (1 - e * e - 2 * z * e) / ((1 + e) * (1 + e));
}

double draw_polya_gamma(Random& random, double weight, double tilt) {
  if (weight > max_summed_weight) {
    const double mean = polya_gamma_mean(weight, tilt);
    const double draw = mean + std::sqrt(polya_gamma_variance(weight, tilt)) * random.normal();
    return std::max(draw, mean / 10);  // 0.9 mean is more than 6 standard deviations
  }
  double sum = 0;
  for (; weight >= 1; weight -= 1) sum += draw_unit_polya_gamma(random, tilt);
  return weight > 0 ? sum + draw_fractional_polya_gamma(random, weight, tilt) : sum;
}

}  // namespace dyad
