#include <algorithm>
#include <atomic>
#include <vector>

#include "solvers/variational/sweeps.h"

namespace dyad {

template <typename Scalar>
inline void VariationalSweeps<Scalar>::prefetch_after(const Occurrences& of, Index e) const {
  // Distances in occurrences. A row is prefetched first, because it contains the index of the partner. Sensitivity:
  // docs/constants.md.
  constexpr Index row_distance = 16;
  constexpr Index partner_distance = 8;  // sensitivity: docs/constants.md
  if (const Index row = rows_.row(of, e, row_distance); row < rows_.count) {
    prefetch_cache_line(rows_.row_features.data() + rows_.first_entry(row));
    prefetch_cache_line(&residuals_[at(row)]);
  }
  if (const Index row = rows_.row(of, e, partner_distance); row < rows_.count) {
    const double* partner = record(rows_.partner(of, e, row).feature);
    prefetch_range(partner, 2 * width_);
  }
}

/// Gradient with respect to factor c: g_c = 2 s_c x (q_c - a_c x), q = A'x of the row; weight: x; square: x^2.
/// With the sums over the row q = sum m x, u = sum v x^2 and t = sum m v x^3, per factor:
/// E[g] = 2 s x (q - m x), Var[g] = 4 x^2 (u - v x^2),
/// Cov[g, f_rest] = 4 x ((q - m x)(u - v x^2) - (t - m v x^3)).
/// For a row of two entries, q - m x and u - v x^2 are the terms of the partner, and the covariance is 0.
template <typename Scalar>
template <bool has_long_rows>
inline void VariationalSweeps<Scalar>::compute_gradients(Index j, Index first, Index count,
                                                         FeatureEquations& equations) const {
  const double* m = record(j);
  const double* v = m + width_;
  const Occurrences of = rows_.occurrences(j);
  for (Index i = 0; i < count; ++i) {
    if constexpr (!has_long_rows) prefetch_after(of, first + i);
    const Index row = rows_.row(of, first + i);
    const double x = rows_.value(of, first + i);
    const double rho = row_precisions_[at(row)];
    double* g = equations.gradients.data() + i * stride_;
    const Simd two_x(2 * x);
    const Simd simd_x(x);
    const Simd four_rho_xx(4 * rho * x * x);
    const auto partner = has_long_rows ? typename Incidence<Scalar>::Partner() : rows_.partner(of, first + i, row);
    const double* other_m = has_long_rows ? row_sums_.data() + row * 3 * width_ : record(partner.feature);
    const double* other_v = other_m + width_;
    const Simd other_x(partner.value);
    for (Index c = 0; c < width_; c += Simd::count) {
      Simd q = Simd(other_m + c) * other_x;
      Simd u = Simd(other_v + c) * other_x * other_x;
      if constexpr (has_long_rows) {
        const Simd mx = Simd(m + c) * simd_x;
        const Simd vxx = Simd(v + c) * simd_x * simd_x;
        q = q - mx;
        u = u - vxx;
        // Cov[g, f_rest] / (4 x), which is not 0 because f_rest contains pairs of the features in g.
        const Simd covariance = q * u - (Simd(other_v + width_ + c) - mx * vxx);
        (Simd(equations.right_side.data() + c) - Simd(4 * rho * x) * covariance).store(equations.right_side.data() + c);
      }
      (two_x * Simd(signs_.data() + c) * q).store(g + c);
      (four_rho_xx * u).add_to(equations.variance_diagonal.data() + c);
    }
    std::fill(g + width_, g + stride_, 0.0);
    if (has_weights_) g[weight_index()] = x;
    if (diagonal_ == Diagonal::free) g[square_index()] = x * x;
  }
}

template <typename Scalar>
template <bool has_long_rows>
inline void VariationalSweeps<Scalar>::add_rows(Index j, Index first, Index count, FeatureEquations& equations) const {
  compute_gradients<has_long_rows>(j, first, count, equations);
  const Occurrences of = rows_.occurrences(j);
  for (Index i = 0; i < count; ++i) {
    const std::size_t row = at(rows_.row(of, first + i));
    const Simd rho(row_precisions_[row]);
    const Simd residual(residuals_[row]);
    for (Index c = 0; c < stride_; c += Simd::count) {
      const Simd weighted = rho * Simd(equations.gradients.data() + i * stride_ + c);
      weighted.store(equations.weighted_gradients.data() + i * stride_ + c);
      (weighted * residual).add_to(equations.right_side.data() + c);
    }
  }
  equations.add_gram(count, first == 0);
}

template <typename Scalar>
template <bool has_long_rows>
inline void VariationalSweeps<Scalar>::apply_step_to_rows(Index j, Index first, Index count,
                                                          FeatureEquations& equations) {
  const Occurrences of = rows_.occurrences(j);
  const double* m = record(j);
  const double* v = m + width_;
  for (Index i = 0; i < count; ++i) {
    const Index row = rows_.row(of, first + i);
    Simd change(0.0);
    for (Index c = 0; c < stride_; c += Simd::count)
      change = change + Simd(equations.gradients.data() + i * stride_ + c) * Simd(equations.step.data() + c);
    residuals_[at(row)] -= change.sum();
    if constexpr (has_long_rows) {
      const Simd x(rows_.value(of, first + i));
      double* sums = row_sums_.data() + row * 3 * width_;
      for (Index c = 0; c < width_; c += Simd::count) {
        const Simd mean_before(m + c);
        const Simd step(equations.step.data() + c);
        const Simd variance(equations.variances.data() + c);
        const Simd variance_before(v + c);
        (step * x).add_to(sums + c);
        ((variance - variance_before) * x * x).add_to(sums + width_ + c);
        ((variance * (mean_before + step) - variance_before * mean_before) * x * x * x).add_to(sums + 2 * width_ + c);
      }
    }
  }
}

template <typename Scalar>
DYAD_TARGET_CLONES void VariationalSweeps<Scalar>::update_feature(Index j, FeatureEquations& equations) {
  const Index count = rows_.occurrence_count(j);
  const auto for_each_block = [&](auto&& visit) {
    for (Index first = 0; first < count; first += FeatureEquations::max_block_rows)
      visit(first, std::min(FeatureEquations::max_block_rows, count - first));
  };
  equations.clear();
  for_each_block([&](Index first, Index block) {
    rows_.has_long_rows ? add_rows<true>(j, first, block, equations) : add_rows<false>(j, first, block, equations);
  });
  double* feature = records_.data() + j * 2 * stride_;
  const double noise = 1 / noise_precision_;
  for (const Index a : parameters_) {
    const double ridge = equations.variance_diagonal[at(a)] + noise * priors_[at(a)];
    equations.right_side[at(a)] -= ridge * feature[mean_offset(a)];
    equations.inverse_diagonal[at(a)] = 1 / (equations.K[at(a * stride_ + a)] + ridge);
    equations.variances[at(a)] = noise * equations.inverse_diagonal[at(a)];
  }
  for (const Index a : parameters_) equations.solve_parameter(a);
  for_each_block([&](Index first, Index block) {
    // The gradients of a single block are still those of add_rows.
    if (count > FeatureEquations::max_block_rows)
      rows_.has_long_rows ? compute_gradients<true>(j, first, block, equations)
                          : compute_gradients<false>(j, first, block, equations);
    rows_.has_long_rows ? apply_step_to_rows<true>(j, first, block, equations)
                        : apply_step_to_rows<false>(j, first, block, equations);
  });
  for (const Index a : parameters_) {
    feature[mean_offset(a)] += equations.step[at(a)];
    feature[variance_offset(a)] = equations.variances[at(a)];
  }
}

template <typename Scalar>
void VariationalSweeps<Scalar>::update_features(std::size_t color_class) {
  const std::vector<std::int32_t>& features = rows_.color_classes[color_class];
  std::atomic<std::size_t> next{0};
  // Features that a thread takes at once from the shared counter. Sensitivity: docs/constants.md.
  constexpr std::size_t batch_features = 64;
  const auto work = [&](int) {
    FeatureEquations equations(stride_);
    for (std::size_t first = next.fetch_add(batch_features); first < features.size();
         first = next.fetch_add(batch_features))
      for (std::size_t i = first; i < std::min(first + batch_features, features.size()); ++i)
        update_feature(features[i], equations);
  };
  if (features.size() <= batch_features)
    work(0);
  else
    pool_.run(work);
}

template void VariationalSweeps<float>::update_features(std::size_t);
template void VariationalSweeps<double>::update_features(std::size_t);

}  // namespace dyad
