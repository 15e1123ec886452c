#include "solvers/variational/sweeps.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

namespace dyad {
namespace {

using Four = Lanes<double>;

constexpr double flat_prior = 1e-12;  // precision of the intercept, of that of all rows

Index rounded_up(Index number) { return (number + Four::count - 1) / Four::count * Four::count; }
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

}  // namespace

/// A row's prediction under the posterior.
template <typename Scalar>
struct VariationalSweeps<Scalar>::RowTotals {
  double mean = 0;
  double variance = 0;
};

template <typename Scalar>
VariationalSweeps<Scalar>::VariationalSweeps(const Rows<Scalar>& rows, LikelihoodPointer likelihood,
                                             const Posterior<Scalar>& start, ThreadPool& pool)
    : likelihood_(std::move(likelihood)),
      pool_(pool),
      rows_(rows),
      rank_(start.means.rank()),
      width_(rounded_up(rank_)),
      stride_(rounded_up(width_ + 2)),
      diagonal_(start.means.diagonal),
      signs_(at(width_)),
      records_(at((rows_.dim + 1) * 2 * stride_)),
      priors_(at(stride_), 1.0),
      noise_precision_(likelihood_->has_noise_variance() ? 1 / start.noise_variance : 1),
      residuals_(at(rows_.count)) {
  rhos_.resize(at(rows_.count), likelihood_->has_noise_variance() && rows_.weights_are_ones);
  if (likelihood_->needs_bound_points()) bound_points_.resize(at(rows_.count));
  if (rows_.deep) totals_.resize(at(rows_.count * 3 * width_));
  for (Index i = 0; i < rows_.count; ++i) total_weight_ += rows_.weight(i);
  for (Index j = 0; j < rows_.dim; ++j) active_ += rows_.count_of(j) > 0 ? 1 : 0;
  take(start);
  learn_priors();
}

template <typename Scalar>
void VariationalSweeps<Scalar>::take(const Posterior<Scalar>& start) {
  has_weights_ = start.variances.weights.cwiseAbs().sum() > 0;
  for (Index c = 0; c < rank_; ++c) learned_.push_back(c);
  if (has_weights_) learned_.push_back(weight_at());
  if (diagonal_ == Diagonal::free) learned_.push_back(square_at());
  intercept_ = static_cast<double>(start.means.intercept);
  intercept_variance_ = static_cast<double>(start.variances.intercept);
  for (Index c = 0; c < rank_; ++c) signs_[at(c)] = static_cast<double>(start.means.signs[c]);
  const auto copy = [&](const SignedFactors<Scalar>& from, auto&& place_of) {
    for (Index j = 0; j < rows_.dim; ++j) {
      double* feature = records_.data() + j * 2 * stride_;
      for (Index c = 0; c < rank_; ++c) feature[place_of(c)] = static_cast<double>(from.A(j, c));
      if (has_weights_) feature[place_of(weight_at())] = static_cast<double>(from.weights[j]);
      if (diagonal_ == Diagonal::free) feature[place_of(square_at())] = static_cast<double>(from.squares[j]);
    }
  };
  copy(start.means, [&](Index place) { return mean_at(place); });
  copy(start.variances, [&](Index place) { return variance_at(place); });
}

template <typename Scalar>
double VariationalSweeps<Scalar>::bytes_for(double rows, double entries_of_row, Index rank) {
  const bool deep = entries_of_row > 2;
  const double per_entry = 2 * static_cast<double>(sizeof(Scalar) + sizeof(std::int32_t));
  const double per_row = 6 + (deep ? 3 * static_cast<double>(rank) : 0);
  return rows * (entries_of_row * per_entry + static_cast<double>(sizeof(double)) * per_row);
}

template <typename Scalar>
template <typename Visit>
double VariationalSweeps<Scalar>::sum_over_rows(Visit&& visit) const {
  constexpr Index in_block = 4096;
  std::vector<double> sums(at((rows_.count + in_block - 1) / in_block));
  pool_.split(static_cast<Index>(sums.size()), [&](int, Share share) {
    for (Index block = share.first; block < share.first + share.count; ++block) {
      const Index first = block * in_block;
      sums[at(block)] = visit(first, std::min(in_block, rows_.count - first));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

/// A row of two features, or of one and the feature that is nothing.
template <typename Scalar>
inline typename VariationalSweeps<Scalar>::RowTotals VariationalSweeps<Scalar>::totals_of_pair(Index i) const {
  const Index first = rows_.first_entry(i);
  const Index count = rows_.first_entry(i + 1) - first;
  const double* one = record(count > 0 ? rows_.row_features[at(first)] : rows_.dim);
  const double* two = record(count > 1 ? rows_.row_features[at(first + 1)] : rows_.dim);
  const double x = count > 0 ? rows_.row_values[at(first)] : 0;
  const double z = count > 1 ? rows_.row_values[at(first + 1)] : 0;
  if (const std::size_t soon = at(first) + 17; soon < rows_.row_features.size()) {
    fetch_numbers(record(rows_.row_features[soon]), 2 * stride_);
  }
  Four mean(0.0);
  Four variance(0.0);
  for (Index c = 0; c < width_; c += Four::count) {
    const Four m(one + c);
    const Four n(two + c);
    const Four u(one + width_ + c);
    const Four v(two + width_ + c);
    mean = mean + Four(signs_.data() + c) * m * n;
    variance = variance + m * m * v + n * n * u + u * v;
  }
  const auto linear = [&](const double* feature, double value) {
    return value * (feature[mean_at(weight_at())] + value * feature[mean_at(square_at())]);
  };
  const auto linear_variance = [&](const double* feature, double value) {
    return value * value * (feature[variance_at(weight_at())] + value * value * feature[variance_at(square_at())]);
  };
  const double xz = x * z;
  return {intercept_ + linear(one, x) + linear(two, z) + 2 * xz * mean.sum(),
          intercept_variance_ + linear_variance(one, x) + linear_variance(two, z) + 4 * xz * xz * variance.sum()};
}

/// `sums`: per factor those of m x, v x^2, m v x^3, (m x)^2, (m x)^2 v x^2, (v x^2)^2.
template <typename Scalar>
inline typename VariationalSweeps<Scalar>::RowTotals VariationalSweeps<Scalar>::totals_of(Index i, double* sums) const {
  const Index width = width_;
  std::fill(sums, sums + 6 * width, 0.0);
  RowTotals totals{intercept_, intercept_variance_};
  for (Index e = rows_.first_entry(i); e < rows_.first_entry(i + 1); ++e) {
    const double x = rows_.row_values[at(e)];
    const double* feature = record(rows_.row_features[at(e)]);
    const double* m = feature;
    const double* v = feature + width;
    const Four four_x(x);
    for (Index c = 0; c < width; c += Four::count) {
      const Four mx = Four(m + c) * four_x;
      const Four vxx = Four(v + c) * four_x * four_x;
      mx.add_to(sums + c);
      vxx.add_to(sums + width + c);
      (mx * vxx).add_to(sums + 2 * width + c);
      (mx * mx).add_to(sums + 3 * width + c);
      (mx * mx * vxx).add_to(sums + 4 * width + c);
      (vxx * vxx).add_to(sums + 5 * width + c);
    }
    totals.mean += x * (feature[mean_at(weight_at())] + x * feature[mean_at(square_at())]);
    totals.variance += x * x * (feature[variance_at(weight_at())] + x * x * feature[variance_at(square_at())]);
  }
  Four mean(0.0);
  Four variance(0.0);
  for (Index c = 0; c < width; c += Four::count) {
    const Four q(sums + c);
    const Four u(sums + width + c);
    const Four two(2.0);
    mean = mean + Four(signs_.data() + c) * (q * q - Four(sums + 3 * width + c));
    variance = variance + two * (two * (q * q * u - two * q * Four(sums + 2 * width + c) + Four(sums + 4 * width + c)) +
                                 u * u - Four(sums + 5 * width + c));
  }
  totals.mean += mean.sum();
  totals.variance = std::max(0.0, totals.variance + variance.sum());
  return totals;
}

/// The sum of E[(y - f)^2] over the rows, for the targets of their bounds.
template <typename Scalar>
DYAD_WIDE_VECTORS double VariationalSweeps<Scalar>::look_at_block(Index first, Index count) {
  Numbers sums(at(6 * width_));
  double squares = 0;
  for (Index i = first; i < first + count; ++i) {
    rows_.fetch_row(i + 16);
    const RowTotals totals = rows_.deep ? totals_of(i, sums.data()) : totals_of_pair(i);
    if (rows_.deep) std::copy(sums.begin(), sums.begin() + 3 * width_, totals_.begin() + i * 3 * width_);
    const Likelihood::QuadraticBound bound = likelihood_->bound(rows_.target(i), totals.mean, totals.variance);
    if (!bound_points_.empty()) bound_points_[at(i)] = bound.point;
    const double residual = bound.target - totals.mean;
    residuals_[at(i)] = residual;
    rhos_.set(at(i), rows_.weight(i) * bound.precision);
    squares += rows_.weight(i) * (residual * residual + totals.variance);
  }
  return squares;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::look_at_rows() {
  const double squares = sum_over_rows([&](Index first, Index count) { return look_at_block(first, count); });
  if (likelihood_->has_noise_variance() && squares > 0) noise_precision_ = total_weight_ / squares;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::move_intercept() {
  if (!(intercept_variance_ > 0)) return;
  const double rho = sum_over_rows([&](Index first, Index count) {
    double sum = 0;
    for (Index i = first; i < first + count; ++i) sum += rhos_[at(i)];
    return sum;
  });
  const double slope = sum_over_rows([&](Index first, Index count) {
    double sum = 0;
    for (Index i = first; i < first + count; ++i) sum += rhos_[at(i)] * residuals_[at(i)];
    return sum;
  });
  const double prior = flat_prior * total_weight_;
  const double precision = prior + noise_precision_ * rho;
  const double step = (noise_precision_ * slope - prior * intercept_) / precision;
  intercept_ += step;
  intercept_variance_ = 1 / precision;
  for (double& residual : residuals_) residual -= step;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::move_features(std::size_t group) {
  const std::vector<std::int32_t>& features = rows_.groups[group];
  std::atomic<std::size_t> next{0};
  constexpr std::size_t at_once = 64;
  const auto work = [&](int) {
    FeatureEquations equations(stride_);
    for (std::size_t first = next.fetch_add(at_once); first < features.size(); first = next.fetch_add(at_once))
      for (std::size_t i = first; i < std::min(first + at_once, features.size()); ++i)
        move_feature(features[i], equations);
  };
  if (features.size() <= at_once)
    work(0);
  else
    pool_.run(work);
}

/// What the occurrences that come soon will ask for: their rows first, then the other features of these.
template <typename Scalar>
inline void VariationalSweeps<Scalar>::fetch_ahead(const Occurrences& of, Index e) const {
  if (const Index row = rows_.row(of, e, 16); row < rows_.count) {
    fetch(rows_.row_features.data() + rows_.first_entry(row));
    fetch(&residuals_[at(row)]);
  }
  if (const Index row = rows_.row(of, e, 8); row < rows_.count) {
    const double* partner = record(rows_.partner(of, e, row).feature);
    fetch_numbers(partner, 2 * width_);
  }
}

/// E[g] of rows [first, first + count) of feature j, and what the variances of others add.
template <typename Scalar>
template <bool deep>
inline void VariationalSweeps<Scalar>::find_slopes(Index j, Index first, Index count, FeatureEquations& own) const {
  const double* m = record(j);
  const double* v = m + width_;
  const Occurrences of = rows_.of(j);
  for (Index i = 0; i < count; ++i) {
    if constexpr (!deep) fetch_ahead(of, first + i);
    const Index row = rows_.row(of, first + i);
    const double x = rows_.value(of, first + i);
    const double rho = rhos_[at(row)];
    double* g = own.slopes.data() + i * stride_;
    const Four two_x(2 * x);
    const Four four_x(x);
    const Four rho_xx(4 * rho * x * x);
    const auto partner = deep ? typename Incidence<Scalar>::Partner() : rows_.partner(of, first + i, row);
    const double* other_m = deep ? totals_.data() + row * 3 * width_ : record(partner.feature);
    const double* other_v = other_m + width_;
    const Four other_x(partner.value);
    for (Index c = 0; c < width_; c += Four::count) {
      Four q = Four(other_m + c) * other_x;
      Four u = Four(other_v + c) * other_x * other_x;
      if constexpr (deep) {
        const Four mx = Four(m + c) * four_x;
        const Four vxx = Four(v + c) * four_x * four_x;
        q = q - mx;
        u = u - vxx;
        // The covariance of g with f_rest, whose pairs share features with g.
        const Four shared = q * u - (Four(other_v + width_ + c) - mx * vxx);
        (Four(own.right.data() + c) - Four(4 * rho * x) * shared).store(own.right.data() + c);
      }
      (two_x * Four(signs_.data() + c) * q).store(g + c);
      (rho_xx * u).add_to(own.extra.data() + c);
    }
    std::fill(g + width_, g + stride_, 0.0);
    if (has_weights_) g[weight_at()] = x;
    if (diagonal_ == Diagonal::free) g[square_at()] = x * x;
  }
}

template <typename Scalar>
template <bool deep>
inline void VariationalSweeps<Scalar>::add_rows(Index j, Index first, Index count, FeatureEquations& own) const {
  find_slopes<deep>(j, first, count, own);
  const Occurrences of = rows_.of(j);
  for (Index i = 0; i < count; ++i) {
    const std::size_t row = at(rows_.row(of, first + i));
    const Four rho(rhos_[row]);
    const Four residual(residuals_[row]);
    for (Index c = 0; c < stride_; c += Four::count) {
      const Four weighted = rho * Four(own.slopes.data() + i * stride_ + c);
      weighted.store(own.weighted.data() + i * stride_ + c);
      (weighted * residual).add_to(own.right.data() + c);
    }
  }
  own.add_products(count, first == 0);
}

/// The rows behind the step.
template <typename Scalar>
template <bool deep>
inline void VariationalSweeps<Scalar>::move_rows(Index j, Index first, Index count, FeatureEquations& own) {
  const Occurrences of = rows_.of(j);
  const double* m = record(j);
  const double* v = m + width_;
  for (Index i = 0; i < count; ++i) {
    const Index row = rows_.row(of, first + i);
    Four change(0.0);
    for (Index c = 0; c < stride_; c += Four::count)
      change = change + Four(own.slopes.data() + i * stride_ + c) * Four(own.step.data() + c);
    residuals_[at(row)] -= change.sum();
    if constexpr (deep) {
      const Four x(rows_.value(of, first + i));
      double* totals = totals_.data() + row * 3 * width_;
      for (Index c = 0; c < width_; c += Four::count) {
        const Four before(m + c);
        const Four step(own.step.data() + c);
        const Four variance(own.variances.data() + c);
        const Four variance_before(v + c);
        (step * x).add_to(totals + c);
        ((variance - variance_before) * x * x).add_to(totals + width_ + c);
        ((variance * (before + step) - variance_before * before) * x * x * x).add_to(totals + 2 * width_ + c);
      }
    }
  }
}

template <typename Scalar>
DYAD_WIDE_VECTORS void VariationalSweeps<Scalar>::move_feature(Index j, FeatureEquations& own) {
  const Index count = rows_.count_of(j);
  const auto in_parts = [&](auto&& visit) {
    for (Index first = 0; first < count; first += FeatureEquations::rows_at_once)
      visit(first, std::min(FeatureEquations::rows_at_once, count - first));
  };
  own.clear();
  in_parts([&](Index first, Index part) {
    rows_.deep ? add_rows<true>(j, first, part, own) : add_rows<false>(j, first, part, own);
  });
  double* feature = records_.data() + j * 2 * stride_;
  const double noise = 1 / noise_precision_;
  for (const Index a : learned_) {
    const double ridge = own.extra[at(a)] + noise * priors_[at(a)];
    own.right[at(a)] -= ridge * feature[mean_at(a)];
    own.inverse[at(a)] = 1 / (own.K[at(a * stride_ + a)] + ridge);
    own.variances[at(a)] = noise * own.inverse[at(a)];
  }
  for (const Index a : learned_) own.move(a);
  in_parts([&](Index first, Index part) {
    // One part is still as add_rows left it.
    if (count > FeatureEquations::rows_at_once)
      rows_.deep ? find_slopes<true>(j, first, part, own) : find_slopes<false>(j, first, part, own);
    rows_.deep ? move_rows<true>(j, first, part, own) : move_rows<false>(j, first, part, own);
  });
  for (const Index a : learned_) {
    feature[mean_at(a)] += own.step[at(a)];
    feature[variance_at(a)] = own.variances[at(a)];
  }
}

template <typename Scalar>
void VariationalSweeps<Scalar>::learn_priors() {
  std::vector<double> squares(at(stride_));
  for (Index j = 0; j < rows_.dim; ++j) {
    if (rows_.count_of(j) == 0) continue;
    for (const Index a : learned_) {
      const double mean = record(j)[mean_at(a)];
      squares[at(a)] += mean * mean + record(j)[variance_at(a)];
    }
  }
  for (Index a = 0; a < stride_; ++a)
    if (squares[at(a)] > 0) priors_[at(a)] = static_cast<double>(active_) / squares[at(a)];
}

template <typename Scalar>
std::vector<double> VariationalSweeps<Scalar>::precisions() const {
  std::vector<double> result(priors_.begin(), priors_.begin() + rank_);
  result.push_back(priors_[at(weight_at())]);
  result.push_back(priors_[at(square_at())]);
  return result;
}

template <typename Scalar>
void VariationalSweeps<Scalar>::sweep() {
  look_at_rows();
  move_intercept();
  for (std::size_t group = 0; group < group_count(); ++group) move_features(group);
  learn_priors();
}

template <typename Scalar>
DYAD_WIDE_VECTORS double VariationalSweeps<Scalar>::bound_of_block(Index first, Index count) const {
  Numbers sums(at(6 * width_));
  double sum = 0;
  for (Index i = first; i < first + count; ++i) {
    rows_.fetch_row(i + 16);
    const RowTotals totals = rows_.deep ? totals_of(i, sums.data()) : totals_of_pair(i);
    const double point = bound_points_.empty() ? 0 : bound_points_[at(i)];
    sum += rows_.weight(i) *
           likelihood_->bound_value(rows_.target(i), point, totals.mean, totals.variance, noise_precision_);
  }
  return sum;
}

template <typename Scalar>
double VariationalSweeps<Scalar>::bound() const {
  double sum = sum_over_rows([&](Index first, Index count) { return bound_of_block(first, count); });
  const auto add_prior = [&](double precision, double mean, double variance) {
    sum += (std::log(precision * variance) - precision * (mean * mean + variance) + 1) / 2;
  };
  if (intercept_variance_ > 0) add_prior(flat_prior * total_weight_, intercept_, intercept_variance_);
  for (Index j = 0; j < rows_.dim; ++j)
    for (const Index a : learned_)
      if (rows_.count_of(j) > 0) add_prior(priors_[at(a)], record(j)[mean_at(a)], record(j)[variance_at(a)]);
  return sum;
}

template <typename Scalar>
Posterior<Scalar> VariationalSweeps<Scalar>::posterior() const {
  const auto made = [&](double intercept, auto&& place_of) {
    SignedFactors<Scalar> parts;
    parts.diagonal = diagonal_;
    parts.intercept = static_cast<Scalar>(intercept);
    parts.weights.resize(rows_.dim);
    parts.squares.resize(diagonal_ == Diagonal::free ? rows_.dim : 0);
    parts.A.resize(rows_.dim, rank_);
    parts.signs.resize(rank_);
    for (Index c = 0; c < rank_; ++c) parts.signs[c] = static_cast<Scalar>(signs_[at(c)]);
    for (Index j = 0; j < rows_.dim; ++j) {
      const double* feature = record(j);
      for (Index c = 0; c < rank_; ++c) parts.A(j, c) = static_cast<Scalar>(feature[place_of(c)]);
      parts.weights[j] = static_cast<Scalar>(feature[place_of(weight_at())]);
      if (diagonal_ == Diagonal::free) parts.squares[j] = static_cast<Scalar>(feature[place_of(square_at())]);
    }
    return parts;
  };
  return {made(intercept_, [&](Index place) { return mean_at(place); }),
          made(intercept_variance_, [&](Index place) { return variance_at(place); }), noise_variance()};
}

template class VariationalSweeps<float>;
template class VariationalSweeps<double>;

}  // namespace dyad
