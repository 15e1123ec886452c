#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"
#include "linalg/simd.h"

namespace dyad {

/// Normal equations of the parameters theta of one feature, divided by the noise precision:
/// (K + diag(variance_diagonal + prior)) step = right_side, with K = sum_i rho_i E[g_i] E[g_i]'. Here g_i is the
/// gradient of the prediction f_i of row i with respect to theta, rho_i the precision of the row relative to the noise,
/// and f_rest = f_i - theta'g_i. Also contains the buffers for a block of rows. Used by one thread.
struct FeatureEquations {
  using Values = CacheAlignedVector<double>;
  using Simd = SimdVector<double>;
  /// Rows per block. For rank 8, two blocks of gradients (stride 12) take 12 KB of a 32 KB L1 cache. Sensitivity:
  /// docs/constants.md.
  static constexpr Index max_block_rows = 64;

  /// `stride`: number of parameters of a feature, padded to a multiple of Simd::count.
  explicit FeatureEquations(Index stride)
      : size(stride),
        K(at(stride * stride)),
        variance_diagonal(at(stride)),
        right_side(at(stride)),
        inverse_diagonal(at(stride)),
        step(at(stride)),
        variances(at(stride)),
        gradients(at(max_block_rows * stride)),
        weighted_gradients(at(max_block_rows * stride)) {}

  /// Sets the sums to 0, except K, which the first block overwrites.
  void clear() {
    std::fill(variance_diagonal.begin(), variance_diagonal.end(), 0.0);
    std::fill(right_side.begin(), right_side.end(), 0.0);
  }

  /// K += sum over the first `count` rows of the block of rho E[g] E[g]', in the upper triangle only. With `from_zero`,
  /// K is overwritten. Computes tiles of Simd::count = 4 rows and columns.
  void add_gram(Index count, bool from_zero) {
    for (Index a = 0; a < size; a += Simd::count)
      for (Index b = a; b < size; b += Simd::count) {
        double* to = K.data() + a * size + b;
        Simd sum0 = from_zero ? Simd(0.0) : Simd(to);
        Simd sum1 = from_zero ? Simd(0.0) : Simd(to + size);
        Simd sum2 = from_zero ? Simd(0.0) : Simd(to + 2 * size);
        Simd sum3 = from_zero ? Simd(0.0) : Simd(to + 3 * size);
        for (Index i = 0; i < count; ++i) {
          const Simd g(gradients.data() + i * size + b);
          const double* w = weighted_gradients.data() + i * size + a;
          sum0 = sum0 + Simd(w[0]) * g;
          sum1 = sum1 + Simd(w[1]) * g;
          sum2 = sum2 + Simd(w[2]) * g;
          sum3 = sum3 + Simd(w[3]) * g;
        }
        sum0.store(to);
        sum1.store(to + size);
        sum2.store(to + 2 * size);
        sum3.store(to + 3 * size);
      }
  }

  /// Gauss-Seidel update of parameter a: solves its equation, given the steps of the parameters before it, and updates
  /// the right sides of the parameters after it.
  void solve_parameter(Index a) {
    const double* row = K.data() + a * size;
    step[at(a)] = right_side[at(a)] * inverse_diagonal[at(a)];
    const Simd step_a(step[at(a)]);
    for (Index b = (a + 1) / Simd::count * Simd::count; b < size; b += Simd::count)
      (Simd(right_side.data() + b) - step_a * Simd(row + b)).store(right_side.data() + b);
  }

  Index size;                ///< the stride
  Values K;                  ///< size x size, row by row; upper triangle
  Values variance_diagonal;  ///< sum_i rho_i Var[g_i], from the posterior variances of the other features
  /// sum_i rho_i (E[g_i] (y_i - E[f_i]) - Cov[g_i, f_rest]) - (variance_diagonal + prior) * mean.
  Values right_side;
  Values inverse_diagonal;    ///< 1 / (K_aa + variance_diagonal_a + prior_a)
  Values step;                ///< change of the means; 0 for parameters that are not estimated
  Values variances;           ///< posterior variances after the step
  Values gradients;           ///< E[g] of the rows of a block, row by row
  Values weighted_gradients;  ///< rho E[g] of the same rows

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
};

}  // namespace dyad
