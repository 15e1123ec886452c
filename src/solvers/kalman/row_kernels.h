#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include <dyad/types.h>

#include "linalg/simd.h"

namespace dyad {

/// Non-zero of a row with the records of its feature (FilterParameters). `Number`: Scalar or const Scalar.
template <typename Number>
struct RowEntry {
  Number* record = nullptr;  ///< means of the factors, their variances, and so on
  Number* mean = nullptr;    ///< record of the group mean, hierarchical prior only
  std::remove_const_t<Number> x = 0;
};

/// theta += P g gain and P -= (P g)^2 innovation_precision.
template <typename Scalar>
struct RowStep {
  Scalar gain = 0;
  Scalar innovation_precision = 0;
};

/// Properties of a model that are known at compile time. `is_untied`: the diagonal of M is zero or free, so that the
/// terms (A_jc x_j)^2 are subtracted. `is_hierarchical`: parameters are the sum of a group mean and a deviation.
template <bool untied, bool hierarchical>
struct RowForm {
  static constexpr bool is_untied = untied;
  static constexpr bool is_hierarchical = hierarchical;
};

/// Sums over the entries of a row for a few consecutive factors c, with A and P the means and variances of the factors.
template <typename Simd>
struct FactorSums {
  Simd projection;         ///< sum_j A_jc x_j
  Simd variance_0;         ///< sum_j P_jc x_j^2
  Simd variance_1;         ///< sum_j P_jc x_j^2 (A_jc x_j); untied diagonal only
  Simd variance_2;         ///< sum_j P_jc x_j^2 (A_jc x_j)^2; untied diagonal only
  Simd squared_terms;      ///< sum_j (A_jc x_j)^2; untied diagonal only
  Simd squared_variances;  ///< sum_j (P_jc x_j^2)^2; untied diagonal and hierarchical prior only
};

/// Computes the sums for the factors [c, c + Simd::count).
template <typename Form, typename Simd, typename Number>
inline FactorSums<Simd> sum_factors(std::span<const RowEntry<Number>> entries, Index c, Index width) {
  FactorSums<Simd> sums;
  for (const RowEntry<Number>& entry : entries) {
    Simd a(entry.record + c);
    Simd p(entry.record + width + c);
    if constexpr (Form::is_hierarchical) {
      a = a + Simd(entry.mean + c);
      p = p + Simd(entry.mean + width + c);
    }
    const Simd x(entry.x);
    const Simd ax = a * x;
    const Simd pxx = p * (x * x);
    sums.projection = sums.projection + ax;
    sums.variance_0 = sums.variance_0 + pxx;
    if constexpr (Form::is_untied) {
      const Simd paxxx = pxx * ax;
      sums.squared_terms = sums.squared_terms + ax * ax;
      sums.variance_1 = sums.variance_1 + paxxx;
      sums.variance_2 = sums.variance_2 + paxxx * ax;
      if constexpr (Form::is_hierarchical) sums.squared_variances = sums.squared_variances + pxx * pxx;
    }
  }
  return sums;
}

/// Updates the factors [c, c + Simd::count) of the features of a row. The gradient with respect to A_jc is
/// (gradient - 2 signs A_jc x_j) x_j; the second term is absent if the diagonal is tied. A group mean has the gradient
/// of the deviation. `min_ratio`: lower bound of P after / P before. `estimates_mean(entry)`: whether the group of the
/// entry has a mean.
template <typename Form, typename Simd, typename Scalar, typename EstimatesMean>
inline void update_factors(std::span<const RowEntry<Scalar>> entries, Index c, Index width, const Scalar* gradient,
                           const Scalar* signs, const RowStep<Scalar>& step, Scalar min_ratio,
                           EstimatesMean&& estimates_mean) {
  const Simd g(gradient);
  const Simd doubled_signs = Simd(signs) * Simd(Scalar(2));
  const Simd gain(step.gain);
  const Simd innovation_precision(step.innovation_precision);
  const Simd ratio(min_ratio);
  for (const RowEntry<Scalar>& entry : entries) {
    Scalar* A = entry.record + c;
    Scalar* P = entry.record + width + c;
    const Simd a(A);
    const Simd p(P);
    const Simd x(entry.x);
    Simd gx = g;
    if constexpr (Form::is_untied) {
      Simd total = a;
      if constexpr (Form::is_hierarchical) total = total + Simd(entry.mean + c);
      gx = gx - doubled_signs * (total * x);
    }
    gx = gx * x;
    const auto update = [&](const Simd& mean, const Simd& variance, Scalar* next_mean, Scalar* next_variance) {
      const Simd Pg = variance * gx;
      (mean + Pg * gain).store(next_mean);
      cwise_max(variance - Pg * Pg * innovation_precision, variance * ratio).store(next_variance);
    };
    update(a, p, A, P);
    if constexpr (Form::is_hierarchical)
      if (estimates_mean(entry)) {
        Scalar* mean = entry.mean + c;
        update(Simd(mean), Simd(mean + width), mean, mean + width);
      }
  }
}

/// Calls visit(simd, c) for ranges [c, c + Simd::count) that cover the factors. `width`: a multiple of 4. `simd` is a
/// vector of that type, whose value is not used.
template <typename Scalar, typename Visit>
inline void for_each_factor_range(Index width, Visit&& visit) {
  using Wide = SimdVector<Scalar, 8>;
  using Narrow = SimdVector<Scalar, 4>;
  Index c = 0;
  for (; c + Wide::count <= width; c += Wide::count) visit(Wide(Scalar(0)), c);
  for (; c < width; c += Narrow::count) visit(Narrow(Scalar(0)), c);
}

}  // namespace dyad
