#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <dyad/rows.h>

#include "base/cache_aligned.h"
#include "linalg/simd.h"

namespace dyad {

/// The normal equations of one feature in units of the noise precision, and room for what goes into them.
struct FeatureEquations {
  using Numbers = BigVector<double>;
  using Four = Lanes<double>;
  static constexpr Index rows_at_once = 64;  ///< which fit a core's cache

  explicit FeatureEquations(Index stride)
      : size(stride),
        K(place(stride * stride)),
        extra(place(stride)),
        right(place(stride)),
        inverse(place(stride)),
        step(place(stride)),
        variances(place(stride)),
        slopes(place(rows_at_once * stride)),
        weighted(place(rows_at_once * stride)) {}

  void clear() {
    std::fill(extra.begin(), extra.end(), 0.0);
    std::fill(right.begin(), right.end(), 0.0);
  }

  /// K += sum over rows of rho g g', above the diagonal; from 0 for the first of them.
  void add_products(Index count, bool from_zero) {
    for (Index a = 0; a < size; a += Four::count)
      for (Index b = a; b < size; b += Four::count) {
        double* to = K.data() + a * size + b;
        Four sum0 = from_zero ? Four(0.0) : Four(to);
        Four sum1 = from_zero ? Four(0.0) : Four(to + size);
        Four sum2 = from_zero ? Four(0.0) : Four(to + 2 * size);
        Four sum3 = from_zero ? Four(0.0) : Four(to + 3 * size);
        for (Index i = 0; i < count; ++i) {
          const Four g(slopes.data() + i * size + b);
          const double* w = weighted.data() + i * size + a;
          sum0 = sum0 + Four(w[0]) * g;
          sum1 = sum1 + Four(w[1]) * g;
          sum2 = sum2 + Four(w[2]) * g;
          sum3 = sum3 + Four(w[3]) * g;
        }
        sum0.store(to);
        sum1.store(to + size);
        sum2.store(to + 2 * size);
        sum3.store(to + 3 * size);
      }
  }

  /// Parameter a moves to where its equation holds, given those before it.
  void move(Index a) {
    const double* row = K.data() + a * size;
    step[place(a)] = right[place(a)] * inverse[place(a)];
    const Four by(step[place(a)]);
    for (Index b = (a + 1) / Four::count * Four::count; b < size; b += Four::count)
      (Four(right.data() + b) - by * Four(row + b)).store(right.data() + b);
  }

  Index size;
  Numbers K;
  Numbers extra;  ///< what the variances of others add to its diagonal
  Numbers right;
  Numbers inverse;  ///< of the diagonal
  Numbers step;     ///< 0 for what is not learned
  Numbers variances;
  Numbers slopes;  ///< E[g] of some rows
  Numbers weighted;

 private:
  static std::size_t place(Index i) { return static_cast<std::size_t>(i); }
};

}  // namespace dyad
