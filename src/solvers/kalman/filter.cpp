#include "solvers/kalman/filter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "linalg/simd.h"

namespace dyad {
namespace {

/// One row leaves at least this share of a variance. Where a row says far more than was known, 1 - P g^2 / S is the
/// difference of two numbers that agree in all digits, and may be negative.
template <typename Scalar>
constexpr Scalar least_share_left = std::numeric_limits<Scalar>::epsilon();

}  // namespace

/// Sums over the entries of one row, its prediction and the variance of the prediction. Refers to the memory of a
/// workspace.
template <typename Scalar>
struct KalmanFilter<Scalar>::Row {
  static constexpr std::size_t array_count = 6;

  Row(Scalar* memory, std::size_t size)
      : projection(memory),
        spread(projection + size),
        spread_3(spread + size),
        spread_4(spread_3 + size),
        own(spread_4 + size),
        slope(own + size) {}

  void clear() {
    std::fill(projection, slope, Scalar(0));
    linear = linear_variance = 0;
  }

  Scalar* projection;  ///< sum_j A_jc x_j, side by side
  Scalar* spread;      ///< sum_j P_jc x_j^2
  Scalar* spread_3;    ///< sum_j P_jc x_j^2 (A_jc x_j)
  Scalar* spread_4;    ///< sum_j P_jc x_j^2 (A_jc x_j)^2
  Scalar* own;         ///< sum_j (A_jc x_j)^2
  Scalar* slope;
  Scalar linear = 0;
  Scalar linear_variance = 0;
  double prediction = 0;
  double variance = 0;  ///< sum P g^2
};

template <typename Scalar>
std::size_t KalmanFilter<Scalar>::row_width() const {
  return static_cast<std::size_t>(options_.shape.left_dim > 0 ? 2 * width_ : width_);
}

template <typename Scalar>
std::size_t KalmanFilter<Scalar>::workspace_size() const {
  return Row::array_count * row_width();
}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, double noise)
    : Base(options, prior), noise_(noise, options.unknowns_of_row()) {}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const Model<Scalar>& model,
                                   std::span<const double> feature_scales, double residual_variance)
    : KalmanFilter(options, prior, residual_variance / 2) {
  const auto start = SignedFactors<Scalar>::of(model, options.shape.diagonal, Scalar(0.01));
  set_scales(feature_scales);
  set(start);
  // The variance of a usual prediction if that of every parameter were 1, for features of scale 1: the slopes of the
  // factors are 2p, or those of the other side.
  double projections = 0;
  for (Index j = 0; j < options.shape.dim; ++j)
    projections +=
        static_cast<double>(start.A.row(j).squaredNorm()) * std::pow(feature_scales[static_cast<std::size_t>(j)], 2);
  const double of_slopes = options.shape.left_dim > 0 ? 0.5 * projections : 4 * projections;
  const double unit = (options.shape.intercept ? 1 : 0) +
                      options.entries * ((options.shape.linear ? 1 : 0) +
                                         (options.shape.diagonal == Diagonal::free ? 2 : 0) + of_slopes);
  const double share = residual_variance / 2 / std::max(unit, std::numeric_limits<double>::min());
  for (Index j = 0; j < options.shape.dim; ++j) set_variances(j, {share, share, share, share});
  intercept_variance_ = options.shape.intercept ? share : 0;
}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const SignedFactors<Scalar>& fit,
                                   std::span<const double> feature_scales, double noise, double spare_rows,
                                   const Rows<Scalar>& rows)
    : KalmanFilter(options, prior, noise) {
  noise_ = NoiseTracker(noise, options.unknowns_of_row(), spare_rows);
  set_scales(feature_scales);
  set(fit);
  for (Index j = 0; j < options_.shape.dim; ++j) set_variances(j, prior_);
  narrow(rows);
  rows_ = static_cast<double>(rows.count());
  std::fill(last_seen_.begin(), last_seen_.end(), rows_);
}

template <typename Scalar>
KalmanFilter<Scalar>::KalmanFilter(const KalmanOptions& options, const Prior& prior, const Posterior<Scalar>& all,
                                   std::span<const double> feature_scales, double rows)
    : KalmanFilter(options, prior, all.noise_variance) {
  noise_ = NoiseTracker(all.noise_variance, options.unknowns_of_row(), rows);
  set_scales(feature_scales);
  set(all.means);
  Base::set_variances(all.variances);
  rows_ = rows;
}

template <typename Scalar>
void KalmanFilter<Scalar>::merge(const NaturalParameters& together, double rows, double noise) {
  Base::take(together);
  rows_ += rows;
  noise_ = NoiseTracker(noise, options_.unknowns_of_row(), rows_);
  innovation_ratio_ = 1;
  recent_squares_ = noise;
}

template <typename Scalar>
void KalmanFilter<Scalar>::narrow(const Rows<Scalar>& rows) {
  if (options_.shape.diagonal == Diagonal::tied)
    narrow_all<false>(rows);
  else
    narrow_all<true>(rows);
}

template <typename Scalar>
template <bool untied>
void KalmanFilter<Scalar>::narrow_all(const Rows<Scalar>& rows) {
  std::vector<Scalar> workspace(workspace_size());
  Row row(workspace.data(), row_width());
  std::vector<double> sums(records_.size());
  double weight_of_all = 0;
  const Likelihood& likelihood = *options_.likelihood;
  const double noise = dispersion();
  for (Index i = 0; i < rows.count(); ++i) {
    look<untied>(rows, i, row);
    finish_look(row, std::nullopt);
    const auto target = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    const double weight = static_cast<double>(rows.weight(i)) * likelihood.expand(target, row.prediction).curvature;
    weight_of_all += weight;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const Scalar* A = record(j);
      double* sum = sums.data() + j * stride_;
      const Scalar* slope = row.slope + side_of(j) * width_;
      for (Index c = 0; c < options_.shape.rank; ++c) {
        const auto g = static_cast<double>(
            (slope[c] - (untied ? 2 * signs_[static_cast<std::size_t>(c)] * A[c] * x : Scalar(0))) * x);
        sum[width_ + c] += weight * g * g;
      }
      const auto square = static_cast<double>(x) * static_cast<double>(x);
      sum[weight_at() + 1] += weight * square;
      sum[square_at() + 1] += weight * (square - options_.square_centre) * (square - options_.square_centre);
    });
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0 && records_[i] > 0)
      records_[i] = static_cast<Scalar>(1 / (1 / static_cast<double>(records_[i]) + sums[i] / noise));
  if (intercept_variance_ > 0) intercept_variance_ = 1 / (1 / intercept_variance_ + weight_of_all / noise);
}

template <typename Scalar>
void KalmanFilter<Scalar>::expect_noise(double variance, double repetitions) {
  const double ratio = variance / (repetitions * noise_.value());
  rows_ *= repetitions;
  std::fill(last_seen_.begin(), last_seen_.end(), rows_);
  noise_ = NoiseTracker(variance, options_.unknowns_of_row(), rows_);
  innovation_ratio_ = 1;
  recent_squares_ = variance;
  const auto changed = [&]<typename Number>(Number& before, double prior) {
    if (!(before > 0)) return;
    const double of_data = 1 / static_cast<double>(before) - 1 / prior;
    before = static_cast<Number>(of_data > 0 ? 1 / (1 / prior + of_data / ratio) : prior);
  };
  if (options_.shape.intercept) changed(intercept_variance_, prior_.intercept);
  for (Index j = 0; j < options_.shape.dim; ++j) {
    Scalar* feature = record(j);
    if (!(feature[scale_at()] > 0)) continue;
    const double per_square = 1 / std::pow(static_cast<double>(feature[scale_at()]), 2);
    for (Index c = 0; c < options_.shape.rank; ++c) changed(feature[width_ + c], prior_.factors * per_square);
    changed(feature[weight_at() + 1], prior_.weights * per_square);
    changed(feature[square_at() + 1], prior_.squares * per_square * per_square);
  }
}

template <typename Scalar>
std::optional<KalmanFilter<Scalar>> KalmanFilter<Scalar>::with_weak_factors_turned() const {
  constexpr double weak = 0.1;
  if (options_.shape.left_dim > 0 || options_.shape.positive) return std::nullopt;
  const std::vector<double> own_scales = Base::scales();
  std::vector<double> inverse(own_scales);
  for (double& scale : inverse) scale = scale > 0 ? 1 / scale : 0;
  // Factors of both signs may cancel each other; the eigenvalues show what remains, for features of scale 1.
  SignedFactors<Scalar> parts = parameters();
  parts.scale_features(own_scales);
  const Model<Scalar> eigen = parts.model();
  const double least = weak * std::abs(static_cast<double>(eigen.spectrum.front()));
  if (!(std::abs(static_cast<double>(eigen.spectrum.back())) < least)) return std::nullopt;
  SignedFactors<Scalar> turned = SignedFactors<Scalar>::of(eigen, options_.shape.diagonal, Scalar(0));
  turned.scale_features(inverse);
  // The others may have to make room, so no parameter is as sure as before.
  const bool is_in_scale = std::all_of(own_scales.begin(), own_scales.end(), [](double s) { return s == 1 || s == 0; });
  KalmanFilter copy(options_, prior_, is_in_scale ? eigen : parameters().model(), own_scales, noise_.value());
  copy.set(turned);
  copy.turns_ = turns_ + 1;
  copy.rows_ = rows_;
  copy.last_seen_ = last_seen_;
  for (Index c = 0; c < options_.shape.rank; ++c) {
    const bool is_weak = std::abs(static_cast<double>(eigen.spectrum[static_cast<std::size_t>(c)])) < least;
    copy.signs_[static_cast<std::size_t>(c)] = is_weak ? -turned.signs[c] : turned.signs[c];
    if (!is_weak) continue;
    for (Index j = 0; j < options_.shape.dim; ++j) {
      copy.start_at_random(j, c);
      copy.record(j)[width_ + c] =
          static_cast<Scalar>(prior_.factors * std::pow(inverse[static_cast<std::size_t>(j)], 2));
    }
  }
  return copy;
}

/// One feature, whose numbers begin at A and which belongs to the side whose sums begin at `side`: theta += P g gain
/// and P -= (P g)^2 shrink for the row `from`, where it has the value x; then its part in the sums for the row `to`,
/// where it has the value to_x. Either half alone, or both in one look at its numbers.
template <typename Scalar>
template <bool untied, bool moves, bool looks, typename Number>
inline void KalmanFilter<Scalar>::pass(Number* A, Index side, Scalar x, const Step& step, Scalar to_x, Row& to) const {
  using Four = Lanes<Scalar>;
  Number* P = A + width_;
  const Scalar* signs = signs_.data();
  const Four two(Scalar(2));
  const Four four_x(x);
  const Four gain(step.gain);
  const Four shrink(step.shrink);
  const Four least_left(least_share_left<Scalar>);
  const Four four_to_x(to_x);
  Scalar* projection = to.projection + side;
  Scalar* spread = to.spread + side;
  Scalar* own = to.own;
  Scalar* spread_3 = to.spread_3;
  Scalar* spread_4 = to.spread_4;
  const Index width = width_;
  for (Index c = 0; c < width; c += Four::count) {
    Four a(A + c);
    Four p(P + c);
    if constexpr (moves) {
      Four g(step.slope + side + c);
      if constexpr (untied) g = g - two * Four(signs + c) * a * four_x;
      const Four Pg = p * g * four_x;
      a = a + Pg * gain;
      p = larger(p - Pg * Pg * shrink, p * least_left);
      a.store(A + c);
      p.store(P + c);
    }
    if constexpr (looks) {
      const Four ax = a * four_to_x;
      const Four pxx = p * four_to_x * four_to_x;
      ax.add_to(projection + c);
      pxx.add_to(spread + c);
      if constexpr (untied) {
        const Four paxxx = pxx * ax;
        (ax * ax).add_to(own + c);
        paxxx.add_to(spread_3 + c);
        (paxxx * ax).add_to(spread_4 + c);
      }
    }
  }
  const auto centre = static_cast<Scalar>(options_.square_centre);
  const auto with = [&](Number* parameter, Scalar g, Scalar to_g) {
    if constexpr (moves) {
      const Scalar Pg = parameter[1] * g;
      parameter[0] += Pg * step.gain;
      parameter[1] = std::max(parameter[1] - Pg * Pg * step.shrink, parameter[1] * least_share_left<Scalar>);
    }
    if constexpr (looks) {
      to.linear += parameter[0] * to_g;
      to.linear_variance += parameter[1] * to_g * to_g;
    }
  };
  with(A + weight_at(), x, to_x);
  if (options_.shape.diagonal == Diagonal::free) with(A + square_at(), x * x - centre, to_x * to_x - centre);
}

template <typename Scalar>
template <bool untied>
void KalmanFilter<Scalar>::look(const Rows<Scalar>& rows, Index i, Row& row) const {
  row.clear();
  rows.for_each_entry(
      i, [&](Index j, Scalar x) { pass<untied, false, true>(record(j), side_of(j) * width_, 0, {}, x, row); });
}

/// Prediction, slopes and variance, from the sums over the row's entries.
template <typename Scalar>
void KalmanFilter<Scalar>::finish_look(Row& row, std::optional<Scalar> target) const {
  const bool two_sides = options_.shape.left_dim > 0;
  double prediction = intercept_ + static_cast<double>(row.linear);
  double variance = intercept_variance_ + static_cast<double>(row.linear_variance);
  for (Index c = 0; c < options_.shape.rank; ++c) {
    const auto at = static_cast<std::size_t>(c);
    const auto sign = static_cast<double>(signs_[at]);
    const auto p = static_cast<double>(row.projection[at]);
    if (two_sides) {
      const auto other = static_cast<std::size_t>(width_ + c);
      const auto q = static_cast<double>(row.projection[other]);
      prediction += sign * p * q;
      variance += q * q * static_cast<double>(row.spread[at]) + p * p * static_cast<double>(row.spread[other]);
      row.slope[at] = static_cast<Scalar>(sign * q);
      row.slope[other] = static_cast<Scalar>(sign * p);
      continue;
    }
    double slope = 2 * sign * p;
    // The secant to the nearer of the two answers: the step for sqrt(y) = |a'x|, whose slope never vanishes.
    if (options_.shape.is_phase_retrieval() && target)
      slope = std::copysign(std::sqrt(std::max(0.0, static_cast<double>(*target))) + std::abs(p), p);
    prediction += sign * (p * p - static_cast<double>(row.own[at]));
    const double bend = options_.shape.diagonal == Diagonal::tied ? 0 : 2 * sign;
    variance += std::max(0.0, slope * slope * static_cast<double>(row.spread[at]) -
                                  2 * slope * bend * static_cast<double>(row.spread_3[at]) +
                                  bend * bend * static_cast<double>(row.spread_4[at]));
    row.slope[at] = static_cast<Scalar>(slope);
  }
  row.prediction = prediction;
  row.variance = variance;
}

template <typename Scalar>
void KalmanFilter<Scalar>::move_intercept(const Step& step) {
  intercept_ += intercept_variance_ * static_cast<double>(step.gain);
  intercept_variance_ =
      std::max(intercept_variance_ - intercept_variance_ * intercept_variance_ * static_cast<double>(step.shrink),
               intercept_variance_ * least_share_left<double>);
}

/// Variances double with every half-life since the feature was last seen, up to what they were before any data.
template <typename Scalar>
void KalmanFilter<Scalar>::forget(const Rows<Scalar>& rows, Index i) {
  const auto faded = [](auto variance, double growth, double most) {
    return variance > 0 ? static_cast<decltype(variance)>(std::min(static_cast<double>(variance) * growth, most))
                        : variance;
  };
  const auto growth_over = [&](double time) { return std::exp2(std::min(time / options_.half_life, 1000.0)); };
  if (intercept_variance_ > 0) intercept_variance_ = faded(intercept_variance_, growth_over(1), prior_.intercept);
  rows.for_each_entry(i, [&](Index j, Scalar) {
    double& last = last_seen_[static_cast<std::size_t>(j)];
    const double growth = growth_over(rows_ - last);
    last = rows_;
    Scalar* feature = record(j);
    const double per_square = 1 / std::pow(static_cast<double>(feature[scale_at()]), 2);
    for (Index c = 0; c < options_.shape.rank; ++c)
      feature[width_ + c] = faded(feature[width_ + c], growth, prior_.factors * per_square);
    feature[weight_at() + 1] = faded(feature[weight_at() + 1], growth, prior_.weights * per_square);
    feature[square_at() + 1] = faded(feature[square_at() + 1], growth, prior_.squares * per_square * per_square);
  });
}

/// Nothing for a row without weight or information.
template <typename Scalar>
std::optional<typename KalmanFilter<Scalar>::Step> KalmanFilter<Scalar>::step_for(const Row& row, Scalar target,
                                                                                  Scalar row_weight) {
  const auto weight = static_cast<double>(row_weight);
  if (!(weight > 0) || !std::isfinite(row.prediction) || !std::isfinite(row.variance)) return std::nullopt;
  const Likelihood::Update update =
      options_.likelihood->update(static_cast<double>(target), row.prediction, row.variance, weight, dispersion());
  if (update.gain == 0 && update.shrink == 0) return std::nullopt;
  if (options_.likelihood->has_noise_variance()) noise_.observe(update.gradient * update.gradient, row.variance);
  return Step{row.slope, static_cast<Scalar>(update.gain), static_cast<Scalar>(update.shrink)};
}

/// The numbers of a row that comes soon, if there is one.
template <typename Scalar>
inline void KalmanFilter<Scalar>::fetch_row(const Rows<Scalar>& rows, Index i) const {
  if (rows.is_sparse() && i < rows.count())
    rows.for_each_entry(i, [&](Index j, Scalar) { fetch_numbers(record(j), stride_); });
}

template <typename Scalar>
template <bool untied>
DYAD_WIDE_VECTORS void KalmanFilter<Scalar>::learn_all(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  workspace_.resize(2 * workspace_size());
  Row row(workspace_.data(), row_width());
  Row next(workspace_.data() + workspace_size(), row_width());
  bool has_looked = false;
  for (Index i = 0; i < rows.count(); ++i) {
    rows_ += 1;
    fetch_row(rows, i + 2);
    if (options_.half_life > 0) forget(rows, i);
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    if (!has_looked) look<untied>(rows, i, row);
    finish_look(row, target);
    predictions[static_cast<std::size_t>(i)] = finite(row.prediction);
    const double noise = noise_.value();
    const std::optional<Step> step = step_for(row, target, rows.weight(i));
    has_looked = false;
    if (!step) continue;
    move_intercept(*step);
    if (!rows.is_sparse() && i + 1 < rows.count() && !(options_.half_life > 0)) {
      // One look at all numbers serves this row and the next.
      next.clear();
      const Scalar* x = rows.row(i);
      const Scalar* to_x = rows.row(i + 1);
      for (Index j = 0; j < options_.shape.dim; ++j)
        pass<untied, true, true>(record(j), side_of(j) * width_, x[j], *step, to_x[j], next);
      has_looked = true;
    } else {
      rows.for_each_entry(
          i, [&](Index j, Scalar x) { pass<untied, true, false>(record(j), side_of(j) * width_, x, *step, 0, next); });
    }
    if (options_.likelihood->has_noise_variance()) {
      if (has_diverged(std::pow(static_cast<double>(target) - row.prediction, 2), noise + row.variance)) {
        reset_variances();
        has_looked = false;
      }
    }
    if (has_looked) std::swap(row, next);
  }
}

/// Whether row after row has been far from where it was expected: the data is no longer what the variances are so sure
/// of.
template <typename Scalar>
bool KalmanFilter<Scalar>::has_diverged(double squared, double expected) {
  constexpr double rate = 0.02;
  constexpr double far = 25;  // what one row can count
  constexpr double lost = 10;
  innovation_ratio_ += rate * (std::min(squared / expected, far) - innovation_ratio_);
  recent_squares_ += rate * (squared - recent_squares_);
  return innovation_ratio_ > lost;
}

/// The means go on, the variances are those of the prior again.
template <typename Scalar>
void KalmanFilter<Scalar>::reset_variances() {
  innovation_ratio_ = 1;
  noise_.start_again(recent_squares_ / 2);
  for (Index j = 0; j < options_.shape.dim; ++j) set_variances(j, prior_);
  if (options_.shape.intercept) intercept_variance_ = prior_.intercept;
}

template <typename Scalar>
void KalmanFilter<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.dim() != options_.shape.dim)
    throw std::invalid_argument("the rows have another number of features than the filter");
  if (options_.shape.diagonal == Diagonal::tied)
    learn_all<false>(rows, predictions);
  else
    learn_all<true>(rows, predictions);
}

template <typename Scalar>
void KalmanFilter<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions,
                                   std::span<Scalar> variances) const {
  std::vector<Scalar> workspace(workspace_size());
  Row row(workspace.data(), row_width());
  for (Index i = 0; i < rows.count(); ++i) {
    fetch_row(rows, i + 2);
    if (options_.shape.diagonal == Diagonal::tied)
      look<false>(rows, i, row);
    else
      look<true>(rows, i, row);
    finish_look(row, std::nullopt);
    predictions[static_cast<std::size_t>(i)] = finite(row.prediction);
    variances[static_cast<std::size_t>(i)] = static_cast<Scalar>(std::max(0.0, row.variance));
  }
}

template <typename Scalar>
void KalmanFilter<Scalar>::archive(Archive& archive) {
  Base::archive(archive);
  archive.number("surprise", innovation_ratio_);
  archive.number("recent_squares", recent_squares_);
  archive.group("noise", [&] { noise_.archive(archive); });
}

template class KalmanFilter<float>;
template class KalmanFilter<double>;

}  // namespace dyad
