#include "solvers/sampling/feature_block.h"

#include <algorithm>
#include <cmath>

namespace dyad {
namespace {

constexpr Index simd_count = SamplerSimd::count;
constexpr Index max_few_row_parameters = 66;  // rank 64; bounds the stack of draw_from_few_rows()
/// Distance of prefetches, in rows. Sensitivity: docs/constants.md.
constexpr Index prefetch_distance = 8;

inline void prefetch_row(const FeatureColumns::Column& column, Index e, const RowStates& rows) {
  if (e + prefetch_distance < column.count()) prefetch_cache_line(rows.row(column.row(e + prefetch_distance)));
}

/// h = x (q - x v), or x q' for bilinear models, in the components [c, c + simd_count).
inline SamplerSimd gradient(const float* row, const float* factors, float x, const FeatureBlock::Side& side, Index c) {
  const SamplerSimd q(row + side.read + c);
  const SamplerSimd simd_x(x);
  return simd_x * (side.is_symmetric ? q - simd_x * SamplerSimd(factors + c) : q);
}

}  // namespace

FeatureBlock::FeatureBlock(Index width)
    : width_(width),
      gradients_(as_size(max_block_rows * width)),
      weighted_gradients_(gradients_.size()),
      block_gram_(as_size(width * width)),
      block_cross_(as_size(3 * width)),
      gram_(as_size((width + 2) * (width + 2))),
      right_side_(as_size(width + 2)),
      theta_(as_size(width + 2)),
      changes_(as_size(width)),
      old_factors_(as_size(width)) {}

template <Index fixed_width>
inline void FeatureBlock::add_rows(const FeatureColumns::Column& column, Index first, Index count, const float* factors,
                                   const Side& side, const RowStates& rows) {
  const Index width = fixed_width > 0 ? fixed_width : width_;
  float* g = gradients_.data();
  float* omega_g = weighted_gradients_.data();
  float* cross = block_cross_.data();
  std::fill(block_cross_.begin(), block_cross_.end(), 0.0F);
  float powers[3] = {};
  float residuals[2] = {};
  for (Index i = 0; i < count; ++i, g += width, omega_g += width) {
    prefetch_row(column, first + i, rows);
    const float* row = rows.row(column.row(first + i));
    const float x = column.value(first + i);
    const float omega = row[rows.precision_offset()];
    const float omega_x = omega * x;
    const float omega_e = omega * row[rows.residual_offset()];
    for (Index c = 0; c < width; c += simd_count) {
      const SamplerSimd h = gradient(row, factors, x, side, c);
      h.store(g + c);
      (SamplerSimd(omega) * h).store(omega_g + c);
      (SamplerSimd(omega_x) * h).add_to(cross + c);
      if (has_square_) (SamplerSimd(omega_x * x) * h).add_to(cross + width + c);
      (SamplerSimd(omega_e) * h).add_to(cross + 2 * width + c);
    }
    powers[0] += omega_x * x;
    powers[1] += omega_x * x * x;
    powers[2] += omega_x * x * x * x;
    residuals[0] += omega_e * x;
    residuals[1] += omega_e * x * x;
  }
  for (int p = 0; p < 3; ++p) block_powers_[p] = static_cast<double>(powers[p]);
  for (int p = 0; p < 2; ++p) block_residuals_[p] = static_cast<double>(residuals[p]);
  // Tiles of 8 x 8 on and below the diagonal.
  for (Index a = 0; a < width; a += simd_count)
    for (Index b = 0; b <= a; b += simd_count) {
      SamplerSimd sums[simd_count];
      for (Index i = 0; i < count; ++i) {
        const SamplerSimd h(gradients_.data() + i * width + b);
        const float* weighted = weighted_gradients_.data() + i * width + a;
        for (Index t = 0; t < simd_count; ++t) sums[t] = sums[t] + SamplerSimd(weighted[t]) * h;
      }
      for (Index t = 0; t < simd_count; ++t) sums[t].store(block_gram_.data() + (a + t) * width + b);
    }
}

template <Index fixed_width>
inline void FeatureBlock::apply_change(const FeatureColumns::Column& column, const float* old_factors,
                                       const float* changes, const Side& side, RowStates& rows) {
  const Index width = fixed_width > 0 ? fixed_width : width_;
  const auto weight_change = static_cast<float>(theta_[as_size(rank_)]);
  const float square_change = has_square_ ? static_cast<float>(theta_[as_size(rank_ + 1)]) : 0.0F;
  for (Index e = 0; e < column.count(); ++e) {
    prefetch_row(column, e, rows);
    float* row = rows.row(column.row(e));
    const float x = column.value(e);
    SamplerSimd sum(0.0F);
    for (Index c = 0; c < width; c += simd_count) {
      const SamplerSimd change(changes + c);
      sum = sum + gradient(row, old_factors, x, side, c) * change;
      (SamplerSimd(x) * change).add_to(row + side.write + c);
    }
    row[rows.residual_offset()] -= sum.partial_sums().sum() + x * (weight_change + x * square_change);
  }
}

void FeatureBlock::collect_block() {
  for (Index a = 0; a < rank_; ++a) {
    for (Index b = 0; b <= a; ++b) gram(a, b) += static_cast<double>(block_gram_[as_size(a * width_ + b)]);
    gram(rank_, a) += static_cast<double>(block_cross_[as_size(a)]);
    if (has_square_) gram(rank_ + 1, a) += static_cast<double>(block_cross_[as_size(width_ + a)]);
    right_side_[as_size(a)] += static_cast<double>(block_cross_[as_size(2 * width_ + a)]);
  }
  gram(rank_, rank_) += block_powers_[0];
  right_side_[as_size(rank_)] += block_residuals_[0];
  if (!has_square_) return;
  gram(rank_ + 1, rank_) += block_powers_[1];
  gram(rank_ + 1, rank_ + 1) += block_powers_[2];
  right_side_[as_size(rank_ + 1)] += block_residuals_[1];
}

DYAD_TARGET_CLONES void FeatureBlock::accumulate(const FeatureColumns::Column& column, const float* factors,
                                                 const Side& side, const RowStates& rows) {
  std::fill(gram_.begin(), gram_.begin() + size_ * size_, 0.0);
  std::fill(right_side_.begin(), right_side_.end(), 0.0);
  for (Index first = 0; first < column.count(); first += max_block_rows) {
    const Index count = std::min(max_block_rows, column.count() - first);
    if (width_ == simd_count)
      add_rows<simd_count>(column, first, count, factors, side, rows);
    else if (width_ == 2 * simd_count)
      add_rows<2 * simd_count>(column, first, count, factors, side, rows);
    else
      add_rows<0>(column, first, count, factors, side, rows);
    collect_block();
  }
}

/// Replaces theta_ by a draw from the conditional distribution, by a Cholesky factorization P = LL': with L y = right
/// side and standard normal z, theta = L^-T (y + z).
void FeatureBlock::solve_and_draw(const Prior& prior, Random& random) {
  const double alpha = prior.noise_precision;
  for (Index a = 0; a < size_; ++a) {
    double product = right_side_[as_size(a)];
    for (Index b = 0; b < size_; ++b) product += (b <= a ? gram(a, b) : gram(b, a)) * theta_[as_size(b)];
    right_side_[as_size(a)] = alpha * product + prior.precisions[a] * prior.means[a];
  }
  for (Index a = 0; a < size_; ++a) {
    for (Index b = 0; b <= a; ++b) gram(a, b) *= alpha;
    gram(a, a) += prior.precisions[a];
  }
  for (Index a = 0; a < size_; ++a) {
    double* row = &gram(a, 0);
    for (Index b = 0; b < a; ++b) {
      const double* other = &gram(b, 0);
      double sum = row[b];
      for (Index c = 0; c < b; ++c) sum -= row[c] * other[c];
      row[b] = sum * other[b];
    }
    double sum = row[a];
    double solution = right_side_[as_size(a)];
    for (Index c = 0; c < a; ++c) {
      sum -= row[c] * row[c];
      solution -= row[c] * right_side_[as_size(c)];
    }
    row[a] = 1 / std::sqrt(sum);  // the diagonal is stored inverted
    right_side_[as_size(a)] = solution * row[a];
  }
  for (Index a = 0; a < size_; ++a) theta_[as_size(a)] = right_side_[as_size(a)] + random.normal();
  for (Index a = size_ - 1; a >= 0; --a) {
    const double value = theta_[as_size(a)] *= gram(a, a);
    for (Index c = 0; c < a; ++c) theta_[as_size(c)] -= gram(a, c) * value;
  }
}

/// Replaces theta_ by a draw from the conditional distribution. With the rows H of the gradients, R = diag(1/(alpha
/// omega)), t = e + H theta, and draws u from the prior and d from N(0, R), the result is
/// u + D^-1 H'(H D^-1 H' + R)^-1 (t - H u - d), where D = diag(lambda).
void FeatureBlock::draw_from_few_rows(const FeatureColumns::Column& column, const float* factors, const Prior& prior,
                                      const Side& side, const RowStates& rows, Random& random) {
  double gradients[max_few_rows][max_few_row_parameters];
  double system[max_few_rows][max_few_rows];
  double solution[max_few_rows];
  double drawn[max_few_row_parameters];
  for (Index a = 0; a < size_; ++a) drawn[a] = prior.means[a] + random.normal() / std::sqrt(prior.precisions[a]);
  Index count = 0;
  for (Index e = 0; e < column.count(); ++e) {
    const float* row = rows.row(column.row(e));
    const auto precision = prior.noise_precision * static_cast<double>(row[rows.precision_offset()]);
    if (!(precision > 0)) continue;
    const auto x = static_cast<double>(column.value(e));
    double* h = gradients[count];
    for (Index c = 0; c < rank_; ++c) {
      const auto q = static_cast<double>(row[side.read + c]);
      h[c] = x * (side.is_symmetric ? q - x * static_cast<double>(factors[c]) : q);
    }
    h[rank_] = x;
    if (has_square_) h[rank_ + 1] = x * x;
    double difference = static_cast<double>(row[rows.residual_offset()]) - random.normal() / std::sqrt(precision);
    for (Index a = 0; a < size_; ++a) difference += h[a] * (theta_[as_size(a)] - drawn[a]);
    solution[count] = difference;
    for (Index other = 0; other <= count; ++other) {
      double sum = other == count ? 1 / precision : 0.0;
      for (Index a = 0; a < size_; ++a) sum += h[a] * gradients[other][a] / prior.precisions[a];
      system[count][other] = sum;
    }
    ++count;
  }
  for (Index a = 0; a < count; ++a) {
    for (Index b = 0; b <= a; ++b) {
      double sum = system[a][b];
      for (Index c = 0; c < b; ++c) sum -= system[a][c] * system[b][c];
      system[a][b] = a == b ? 1 / std::sqrt(sum) : sum * system[b][b];  // the diagonal is stored inverted
    }
    for (Index c = 0; c < a; ++c) solution[a] -= system[a][c] * solution[c];
    solution[a] *= system[a][a];
  }
  for (Index a = count - 1; a >= 0; --a) {
    solution[a] *= system[a][a];
    for (Index c = 0; c < a; ++c) solution[c] -= system[a][c] * solution[a];
  }
  for (Index a = 0; a < size_; ++a) {
    double sum = 0;
    for (Index i = 0; i < count; ++i) sum += gradients[i][a] * solution[i];
    theta_[as_size(a)] = drawn[a] + sum / prior.precisions[a];
  }
}

DYAD_TARGET_CLONES void FeatureBlock::draw(const FeatureColumns::Column& column, Index j, const Prior& prior,
                                           const Side& side, FeatureParameters& parameters, RowStates& rows,
                                           Random& random) {
  rank_ = parameters.rank();
  has_square_ = prior.has_square;
  size_ = rank_ + (has_square_ ? 2 : 1);
  float* factors = parameters.factors(j);
  for (Index a = 0; a < size_; ++a) theta_[as_size(a)] = static_cast<double>(parameters.at(j, a));
  if (column.count() <= max_few_rows && 2 * column.count() <= size_ && size_ <= max_few_row_parameters) {
    draw_from_few_rows(column, factors, prior, side, rows, random);
  } else {
    accumulate(column, factors, side, rows);
    solve_and_draw(prior, random);
  }
  std::copy(factors, factors + width_, old_factors_.begin());
  for (Index a = 0; a < size_; ++a) {
    float& value = parameters.at(j, a);
    const float old = value;
    value = static_cast<float>(theta_[as_size(a)]);
    if (a < rank_)
      changes_[as_size(a)] = value - old;
    else
      theta_[as_size(a)] = static_cast<double>(value - old);
  }
  if (width_ == simd_count)
    apply_change<simd_count>(column, old_factors_.data(), changes_.data(), side, rows);
  else if (width_ == 2 * simd_count)
    apply_change<2 * simd_count>(column, old_factors_.data(), changes_.data(), side, rows);
  else
    apply_change<0>(column, old_factors_.data(), changes_.data(), side, rows);
}

}  // namespace dyad
