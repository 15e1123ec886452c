// Predictions and Kalman updates of the rows. Constructors and operations on the whole posterior: filter_posterior.cpp.

#include "solvers/kalman/filter.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "linalg/simd.h"

namespace dyad {
namespace {

/// Lower bound of P_after / P_before for one row. If a row determines a parameter to all digits, 1 - P g^2 / S is a
/// difference of two nearly equal numbers, and rounding can make it negative.
template <typename Scalar>
constexpr Scalar min_variance_ratio = std::numeric_limits<Scalar>::epsilon();

/// Number of rows ahead of the current one for which the records of sparse features are prefetched. Sensitivity:
/// docs/constants.md.
constexpr Index prefetch_distance_rows = 2;
/// The hierarchical prior is updated after `first_prior_update_rows` rows, and then whenever the number of rows has
/// grown by the factor `prior_update_growth`, but by at least `min_prior_update_rows` rows. Sensitivity:
/// docs/constants.md.
constexpr double min_prior_update_rows = 100;
constexpr double prior_update_growth = 1.2;
/// An update of the hierarchical prior reads all records twice and writes them once. If they exceed a cache of this
/// size, the time per feature is about that of the two entries of a row, by measurement. The updates are then spaced
/// such that they take at most the share `max_prior_update_share` of the time of the rows.
constexpr double max_cached_record_bytes = 1 << 24;
constexpr double prior_update_entries = 2;
constexpr double max_prior_update_share = 0.1;

}  // namespace

/// A row with its prediction. The entries point into the filter.
template <typename Scalar>
template <typename Number>
struct KalmanFilter<Scalar>::Row {
  explicit Row(Index gradient_count) : gradient(static_cast<std::size_t>(gradient_count)) {}

  /// Entries of features of the left side, or of the right side of a bilinear model.
  [[nodiscard]] std::span<const RowEntry<Number>> side(bool is_right) const {
    return {entries[is_right ? 1 : 0].data(), counts[is_right ? 1 : 0]};
  }
  /// Makes space for this number of entries on each side.
  void reserve(std::size_t count) {
    for (auto& side_entries : entries)
      if (side_entries.size() < count) side_entries.resize(count);
  }

  std::array<std::vector<RowEntry<Number>>, 2> entries;  ///< of both sides; symmetric: of the left side
  std::array<std::size_t, 2> counts{};                   ///< used elements of `entries`
  std::vector<Scalar> gradient;  ///< df / dp_c for the projections p_c; bilinear: left side, then right side
  SimdVector<Scalar> linear;     ///< sums of w_j x_j, of its variance, and the same of the coefficients of squares
  double prediction = 0;         ///< f
  double variance = 0;           ///< v = sum P g^2 over all parameters, and the second-order term
};

template <typename Scalar>
void KalmanFilter<Scalar>::add_laplace_precisions(const Rows<Scalar>& rows) {
  with_form([&](auto form) { this->template add_laplace_precisions_of<decltype(form)>(rows); });
}

template <typename Scalar>
template <typename Visit>
void KalmanFilter<Scalar>::with_form(Visit&& visit) const {
  const bool is_untied = options_.shape.diagonal != Diagonal::tied;
  if (Base::learns_prior())
    is_untied ? visit(RowForm<true, true>()) : visit(RowForm<false, true>());
  else
    is_untied ? visit(RowForm<true, false>()) : visit(RowForm<false, false>());
}

template <typename Scalar>
template <typename Form>
void KalmanFilter<Scalar>::add_laplace_precisions_of(const Rows<Scalar>& rows) {
  Row<const Scalar> row(gradient_count());
  // sum weight g^2 at the offset of each variance in the records.
  std::vector<double> sums(records_.size());
  double total_weight = 0;
  const Likelihood& likelihood = *options_.likelihood;
  const double noise = dispersion();
  for (Index i = 0; i < rows.count(); ++i) {
    collect<Form, true>(*this, rows, i, row);
    predict_row<Form>(row, std::nullopt);
    const auto target = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    const double weight = static_cast<double>(rows.weight(i)) * likelihood.expand(target, row.prediction).curvature;
    total_weight += weight;
    for (const bool is_right : {false, true})
      for (const auto& [A, mean, x] : row.side(is_right)) {
        double* sum = sums.data() + (A - records_.data());
        const Scalar* gradient = row.gradient.data() + (is_right ? width_ : 0);
        for (Index c = 0; c < options_.shape.rank; ++c) {
          const Scalar a = Form::is_hierarchical ? A[c] + mean[c] : A[c];
          const auto g = static_cast<double>(
              (gradient[c] - (Form::is_untied ? 2 * signs_[static_cast<std::size_t>(c)] * a * x : Scalar(0))) * x);
          sum[width_ + c] += weight * g * g;
        }
        const auto square = static_cast<double>(x) * static_cast<double>(x);
        sum[weight_offset() + 1] += weight * square;
        sum[square_offset() + 1] += weight * (square - options_.square_center) * (square - options_.square_center);
      }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0 && records_[i] > 0)
      records_[i] = static_cast<Scalar>(1 / (1 / static_cast<double>(records_[i]) + sums[i] / noise));
  if (intercept_variance_ > 0) intercept_variance_ = 1 / (1 / intercept_variance_ + total_weight / noise);
}

/// Collects the entries of row i and sums the terms that f is linear in. `knows_all`: features without data are
/// omitted. Otherwise, they have the prior distribution and an absolute value of 1 (hierarchical prior). `self`: this
/// filter, or a constant reference to it.
template <typename Scalar>
template <typename Form, bool knows_all, typename Self, typename Number>
void KalmanFilter<Scalar>::collect(Self& self, const Rows<Scalar>& rows, Index i, Row<Number>& row) {
  row.reserve(static_cast<std::size_t>(rows.entry_count(i)));
  std::array<RowEntry<Number>*, 2> next{row.entries[0].data(), row.entries[1].data()};
  SimdVector<Scalar> linear;
  const auto center = static_cast<Scalar>(self.options_.square_center);
  const Index dim = self.options_.shape.dim;
  // Bilinear models have a tied diagonal.
  const Index left_dim = Form::is_untied ? 0 : self.options_.shape.left_dim;
  const Index weight_offset = self.weight_offset();
  const Index scale_offset = self.scale_offset();
  rows.for_each_entry(i, [&](Index j, Scalar x) {
    RowEntry<Number> entry{nullptr, nullptr, x};
    const bool is_unknown = !knows_all && Form::is_hierarchical && j >= dim;
    if (!is_unknown) entry.record = self.record(j);
    if constexpr (Form::is_hierarchical) {
      const Index group = is_unknown ? j - dim : self.group_of(j);
      entry.mean = self.mean_record(group);
      if (is_unknown || !(entry.record[scale_offset] > 0)) {
        if (knows_all || x == 0) return;
        if constexpr (std::is_const_v<Number>) entry.record = self.prior_record(group);
        entry.x = std::copysign(Scalar(1), x);
      }
    }
    SimdVector<Scalar> terms(entry.record + weight_offset);
    if constexpr (Form::is_hierarchical) terms = terms + SimdVector<Scalar>(entry.mean + weight_offset);
    const Scalar square = entry.x * entry.x - center;
    linear = linear + terms * SimdVector<Scalar>(entry.x, entry.x * entry.x, square, square * square);
    // The groups of a bilinear model are its sides.
    const bool is_right = left_dim > 0 && (is_unknown ? j > dim : j >= left_dim);
    *next[is_right ? 1 : 0]++ = entry;
  });
  for (std::size_t side : {std::size_t{0}, std::size_t{1}})
    row.counts[side] = static_cast<std::size_t>(next[side] - row.entries[side].data());
  row.linear = linear;
}

/// Computes the prediction f, df/dp and v. With p_c = sum_j A_jc x_j, s_c the sign of factor c, and D_c the sum of its
/// squared terms (0 if the diagonal is tied):
///   symmetric: f = b + linear + sum_c s_c (p_c^2 - D_c), df/dA_jc = (2 s_c p_c - 2 s_c A_jc x_j [untied]) x_j;
///   bilinear:  f = b + linear + sum_c s_c p_c q_c, with p of the left side and q of the right side.
/// The hierarchical prior adds half of the variance of the products of two factors, sum_c sum_{i<j} 2 P_ic P_jc x_i^2
/// x_j^2 for symmetric models. `target` is used by phase retrieval only; without it, the gradient is that of f.
template <typename Scalar>
template <typename Form, typename Number>
void KalmanFilter<Scalar>::predict_row(Row<Number>& row, std::optional<Scalar> target) const {
  SimdVector<Scalar> interactions;           // partial sums of the interactions
  SimdVector<Scalar> interaction_variances;  // partial sums of their variances
  const bool is_bilinear = options_.shape.left_dim > 0;
  const bool has_secant_gradient = options_.shape.is_phase_retrieval() && target;
  const auto target_root = has_secant_gradient ? std::sqrt(std::max(Scalar(0), *target)) : Scalar(0);
  const std::span<const RowEntry<Number>> left = row.side(false);
  const std::span<const RowEntry<Number>> right = row.side(true);
  Scalar* gradient = row.gradient.data();
  for_each_factor_range<Scalar>(width_, [&]<typename Simd>(Simd, Index c) {
    const Simd zero(Scalar(0));
    const Simd sign(signs_.data() + c);
    const FactorSums<Simd> sums = sum_factors<Form, Simd>(left, c, width_);
    const Simd& p = sums.projection;
    if (is_bilinear) {
      const FactorSums<Simd> right_sums = sum_factors<Form, Simd>(right, c, width_);
      const Simd& q = right_sums.projection;
      interactions = interactions + (sign * p * q).partial_sums();
      Simd v = q * q * sums.variance_0 + p * p * right_sums.variance_0;
      if constexpr (Form::is_hierarchical) v = v + Simd(Scalar(0.5)) * sums.variance_0 * right_sums.variance_0;
      interaction_variances = interaction_variances + v.partial_sums();
      (sign * q).store(gradient + c);
      (sign * p).store(gradient + width_ + c);
      return;
    }
    const Simd doubled_sign = sign + sign;
    Simd g = doubled_sign * p;
    // Phase retrieval: y - p^2 = (sqrt(y) - |p|)(sqrt(y) + |p|), so the secant gradient (sqrt(y) + |p|) sign(p) gives
    // the step for sqrt(y) = |p|. Unlike 2p, it does not vanish at p = 0.
    if (has_secant_gradient) {
      p.store(gradient + c);
      for (Scalar* each = gradient + c; each != gradient + c + Simd::count; ++each)
        *each = std::copysign(target_root + std::abs(*each), *each);
      g = Simd(gradient + c);
    }
    g.store(gradient + c);
    Simd v = g * g * sums.variance_0;
    if constexpr (Form::is_untied) {
      interactions = interactions + (sign * (p * p - sums.squared_terms)).partial_sums();
      // sum_j P_jc x_j^2 (g - 2 s_c A_jc x_j)^2
      v = cwise_max(zero, v - (g + g) * doubled_sign * sums.variance_1 + doubled_sign * doubled_sign * sums.variance_2);
      if constexpr (Form::is_hierarchical)
        v = v + cwise_max(zero, sums.variance_0 * sums.variance_0 - sums.squared_variances);
    } else {
      interactions = interactions + (sign * (p * p)).partial_sums();
      if constexpr (Form::is_hierarchical) v = v + sums.variance_0 * sums.variance_0;
    }
    interaction_variances = interaction_variances + v.partial_sums();
  });
  // The coefficients of squares and their variances are 0 unless the diagonal is free.
  row.prediction = intercept_ + static_cast<double>(row.linear[0] + row.linear[2] + interactions.sum());
  row.variance = intercept_variance_ + static_cast<double>(row.linear[1] + row.linear[3] + interaction_variances.sum());
}

/// theta += P g gain and P -= (P g)^2 innovation_precision for all parameters of the features of the row, their group
/// means, and the intercept.
template <typename Scalar>
template <typename Form>
void KalmanFilter<Scalar>::update_row(const Row<Scalar>& row, const RowStep<Scalar>& step) {
  update_intercept(step);
  const auto estimates_mean = [scale = scale_offset()](const RowEntry<Scalar>& entry) { return entry.mean[scale] > 0; };
  // Parameters that f is linear in: parameter[0] is the mean, parameter[1] the variance, g the gradient.
  const bool has_squares = options_.shape.diagonal == Diagonal::free;
  const auto center = static_cast<Scalar>(options_.square_center);
  const auto update = [&](Scalar* parameter, Scalar g) {
    const Scalar Pg = parameter[1] * g;
    parameter[0] += Pg * step.gain;
    parameter[1] =
        std::max(parameter[1] - Pg * Pg * step.innovation_precision, parameter[1] * min_variance_ratio<Scalar>);
  };
  for (const bool is_right : {false, true}) {
    const std::span<const RowEntry<Scalar>> entries = row.side(is_right);
    if (entries.empty()) continue;
    for (const RowEntry<Scalar>& entry : entries) {
      update(entry.record + weight_offset(), entry.x);
      if (has_squares) update(entry.record + square_offset(), entry.x * entry.x - center);
      if constexpr (Form::is_hierarchical)
        if (estimates_mean(entry)) update(entry.mean + weight_offset(), entry.x);
    }
    const Scalar* gradient = row.gradient.data() + (is_right ? width_ : 0);
    for_each_factor_range<Scalar>(width_, [&]<typename Simd>(Simd, Index c) {
      update_factors<Form, Simd>(entries, c, width_, gradient + c, signs_.data() + c, step, min_variance_ratio<Scalar>,
                                 estimates_mean);
    });
  }
}

template <typename Scalar>
void KalmanFilter<Scalar>::update_intercept(const RowStep<Scalar>& step) {
  intercept_ += intercept_variance_ * static_cast<double>(step.gain);
  intercept_variance_ = std::max(
      intercept_variance_ - intercept_variance_ * intercept_variance_ * static_cast<double>(step.innovation_precision),
      intercept_variance_ * min_variance_ratio<double>);
}

/// Multiplies the variances of the features of row i by 2^(rows since their last occurrence / half-life), and limits
/// them to the prior variances.
template <typename Scalar>
void KalmanFilter<Scalar>::forget(const Rows<Scalar>& rows, Index i) {
  // Prevents overflow: the largest exponent of a double is 1023.
  constexpr double max_half_lives = 1000;
  const auto inflate = [](auto variance, double factor, double max_variance) {
    return variance > 0
               ? static_cast<decltype(variance)>(std::min(static_cast<double>(variance) * factor, max_variance))
               : variance;
  };
  const auto inflation = [&](double elapsed_rows) {
    return std::exp2(std::min(elapsed_rows / options_.half_life, max_half_lives));
  };
  if (intercept_variance_ > 0) intercept_variance_ = inflate(intercept_variance_, inflation(1), prior_.intercept);
  rows.for_each_entry(i, [&](Index j, Scalar) {
    double& last = last_occurrence_[static_cast<std::size_t>(j)];
    const double factor = inflation(rows_ - last);
    last = rows_;
    Scalar* feature = record(j);
    const double inverse_square = 1 / std::pow(static_cast<double>(feature[scale_offset()]), 2);
    if (learned_prior_) {
      if (!(feature[scale_offset()] > 0)) return;
      const std::span<const double> tau = learned_prior_->variances(group_of(j));
      for (Index c = 0; c < options_.shape.rank; ++c)
        feature[width_ + c] = inflate(feature[width_ + c], factor, tau[static_cast<std::size_t>(c)] * inverse_square);
      feature[weight_offset() + 1] =
          inflate(feature[weight_offset() + 1], factor,
                  tau[static_cast<std::size_t>(learned_prior_->weight_place())] * inverse_square);
      feature[square_offset() + 1] =
          inflate(feature[square_offset() + 1], factor,
                  tau[static_cast<std::size_t>(learned_prior_->square_place())] * inverse_square * inverse_square);
      return;
    }
    for (Index c = 0; c < options_.shape.rank; ++c)
      feature[width_ + c] = inflate(feature[width_ + c], factor, prior_.factors * inverse_square);
    feature[weight_offset() + 1] = inflate(feature[weight_offset() + 1], factor, prior_.weights * inverse_square);
    feature[square_offset() + 1] =
        inflate(feature[square_offset() + 1], factor, prior_.squares * inverse_square * inverse_square);
  });
}

/// Computes the step of a row. std::nullopt: the row has no weight, carries no information, or its prediction is not
/// finite.
template <typename Scalar>
std::optional<RowStep<Scalar>> KalmanFilter<Scalar>::compute_step(double prediction, double variance, Scalar target,
                                                                  Scalar row_weight) const {
  const auto weight = static_cast<double>(row_weight);
  if (!(weight > 0) || !std::isfinite(prediction) || !std::isfinite(variance)) return std::nullopt;
  const Likelihood::Update update =
      options_.likelihood->update(static_cast<double>(target), prediction, variance, weight, dispersion());
  if (update.gain == 0 && update.innovation_precision == 0) return std::nullopt;
  return RowStep<Scalar>{static_cast<Scalar>(update.gain), static_cast<Scalar>(update.innovation_precision)};
}

/// Prefetches the records of the features of sparse row i. Does nothing beyond the last row.
template <typename Scalar>
inline void KalmanFilter<Scalar>::prefetch_row(const Rows<Scalar>& rows, Index i) const {
  if (rows.is_sparse() && i < rows.count())
    rows.for_each_entry(i, [&](Index j, Scalar) { prefetch_range(record(j), stride_); });
}

template <typename Scalar>
template <typename Form>
DYAD_TARGET_CLONES void KalmanFilter<Scalar>::learn_rows(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  Row<Scalar> row(gradient_count());
  const bool has_noise = options_.likelihood->has_noise_variance();
  const bool has_feature_noise = has_noise && groups_.has_any_mean();
  for (Index i = 0; i < rows.count(); ++i) {
    rows_ += 1;
    prefetch_row(rows, i + prefetch_distance_rows);
    if (options_.half_life > 0) forget(rows, i);
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    collect<Form, true>(*this, rows, i, row);
    predict_row<Form>(row, target);
    predictions[static_cast<std::size_t>(i)] = finite_or_intercept(
        Form::is_hierarchical && !has_noise ? options_.likelihood->posterior_predictor(row.prediction, row.variance)
                                            : row.prediction);
    const std::optional<RowStep<Scalar>> step = compute_step(row.prediction, row.variance, target, rows.weight(i));
    if (!step) continue;
    update_row<Form>(row, *step);
    if (has_noise) {
      const double residual = static_cast<double>(target) - row.prediction;
      const double expected = noise_variance() + row.variance;
      if constexpr (Form::is_hierarchical) {
        if (has_feature_noise) observe_feature_noise(row, residual * residual);
        log_noise_.observe(residual * residual, row.variance);
      } else
        noise_.observe(residual * residual, row.variance);
      if (has_diverged(residual * residual, expected)) reset_variances();
    }
    if (Form::is_hierarchical && rows_ >= next_prior_update_ && !holds_prior_) {
      Base::update_prior();
      next_prior_update_ = rows_of_next_prior_update();
    }
  }
}

template <typename Scalar>
double KalmanFilter<Scalar>::rows_of_next_prior_update() const {
  const double next = std::max(rows_ + min_prior_update_rows, std::floor(rows_ * prior_update_growth));
  const auto features = static_cast<double>(added_.size());
  if (features * static_cast<double>(stride_ * static_cast<Index>(sizeof(Scalar))) <= max_cached_record_bytes)
    return next;
  return std::max(
      next, rows_ + std::floor(features * prior_update_entries / (max_prior_update_share * options_.entries_per_row)));
}

template <typename Scalar>
void KalmanFilter<Scalar>::observe_feature_noise(const Row<Scalar>& row, double squared) {
  double log_multiplier = 0;
  double uncertainty = 0;
  bool has_new = false;
  for (const bool is_right : {false, true})
    for (const RowEntry<Scalar>& entry : row.side(is_right)) {
      log_multiplier += static_cast<double>(entry.record[noise_offset()]);
      uncertainty += static_cast<double>(entry.record[noise_offset() + 1]);
      // Each row with the feature decreases the variance of its multiplier.
      has_new = has_new || entry.record[noise_offset() + 1] == static_cast<Scalar>(FeatureNoise::log_variance);
    }
  const FeatureNoise::Step step =
      feature_noise_.observe(squared, row.variance, log_multiplier, uncertainty, has_new, log_noise_.value());
  for (const bool is_right : {false, true})
    for (const RowEntry<Scalar>& entry : row.side(is_right)) {
      Scalar* noise = entry.record + noise_offset();
      noise[0] += noise[1] * static_cast<Scalar>(step.mean);
      noise[1] -= noise[1] * noise[1] * static_cast<Scalar>(step.precision);
    }
}

template <typename Scalar>
void KalmanFilter<Scalar>::noise_variances(const Rows<Scalar>& rows, const std::vector<bool>& have_unknown,
                                           std::span<Scalar> variances) const {
  if (!Base::learns_prior() || !feature_noise_.is_better())
    return std::fill(variances.begin(), variances.end(), static_cast<Scalar>(noise_variance()));
  for (Index i = 0; i < rows.count(); ++i) {
    double log_multiplier = 0;
    rows.for_each_entry(i, [&](Index j, Scalar) { log_multiplier += static_cast<double>(record(j)[noise_offset()]); });
    const auto at = static_cast<std::size_t>(i);
    if (have_unknown[at]) log_multiplier += FeatureNoise::log_variance / 2;  // E exp(l) for l ~ N(0, log_variance)
    variances[at] = static_cast<Scalar>(feature_noise_.value(log_multiplier, have_unknown[at]));
  }
}

template <typename Scalar>
void KalmanFilter<Scalar>::start_further_passes() {
  Base::remove_prior_means();
  Base::update_prior();
}

template <typename Scalar>
void KalmanFilter<Scalar>::relearn(const Rows<Scalar>& rows, std::span<const float> feature_rows, double all_rows) {
  if (!Base::learns_prior()) throw std::logic_error("further passes of a filter require a hierarchical prior");
  with_form([&](auto form) { this->template relearn_rows<decltype(form)>(rows, feature_rows, all_rows); });
}

template <typename Scalar>
template <typename Form>
DYAD_TARGET_CLONES void KalmanFilter<Scalar>::relearn_rows(const Rows<Scalar>& rows,
                                                           std::span<const float> feature_rows, double all_rows) {
  Row<Scalar> row(gradient_count());
  const auto remaining = [](double count) { return std::max(0.0, 1 - 1 / std::max(count, 1.0)); };
  for (Index i = 0; i < rows.count(); ++i) {
    if (!(rows.weight(i) > 0)) continue;
    prefetch_row(rows, i + prefetch_distance_rows);
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (x == 0 || !(record(j)[scale_offset()] > 0)) return;
      Base::scale_evidence(j, remaining(static_cast<double>(feature_rows[static_cast<std::size_t>(j)])));
      Base::scale_mean_evidence(group_of(j), remaining(all_rows));
    });
    if (intercept_variance_ > 0 && all_rows > 1) intercept_variance_ /= remaining(all_rows);
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    collect<Form, true>(*this, rows, i, row);
    predict_row<Form>(row, target);
    const std::optional<RowStep<Scalar>> step = compute_step(row.prediction, row.variance, target, rows.weight(i));
    if (step) update_row<Form>(row, *step);
  }
}

/// Adds r^2 and its expectation S to the moving averages. Returns whether the average of r^2 / S shows that the
/// variances are too small for the data, as after a change of its distribution.
template <typename Scalar>
bool KalmanFilter<Scalar>::has_diverged(double squared_residual, double expected) {
  // Weight of a new row in the exponential moving averages: an average over about 1 / 0.02 = 50 rows. Sensitivity:
  // docs/constants.md.
  constexpr double averaging_rate = 0.02;
  // r^2 / S is limited to that of five standard deviations. Sensitivity: docs/constants.md.
  constexpr double max_innovation_ratio = 25;
  // The average of r^2 / S is 1 for a correct posterior. From 1 it takes at least 24 rows to exceed 10, because r^2 / S
  // is limited to 25. Sensitivity: docs/constants.md.
  constexpr double divergence_threshold = 10;
  innovation_ratio_ +=
      averaging_rate * (std::min(squared_residual / expected, max_innovation_ratio) - innovation_ratio_);
  recent_squares_ += averaging_rate * (squared_residual - recent_squares_);
  return innovation_ratio_ > divergence_threshold;
}

template <typename Scalar>
void KalmanFilter<Scalar>::learn(const Rows<Scalar>& rows, std::span<Scalar> predictions) {
  if (rows.dim() != options_.shape.dim)
    throw std::invalid_argument("the filter has " + std::to_string(options_.shape.dim) + " features, the rows have " +
                                std::to_string(rows.dim()));
  with_form([&](auto form) { this->template learn_rows<decltype(form)>(rows, predictions); });
}

template <typename Scalar>
void KalmanFilter<Scalar>::predict(const Rows<Scalar>& rows, std::span<Scalar> predictions,
                                   std::span<Scalar> variances) const {
  Row<const Scalar> row(gradient_count());
  with_form([&](auto form) {
    using Form = decltype(form);
    for (Index i = 0; i < rows.count(); ++i) {
      collect<Form, false>(*this, rows, i, row);
      predict_row<Form>(row, std::nullopt);
      predictions[static_cast<std::size_t>(i)] = finite_or_intercept(row.prediction);
      variances[static_cast<std::size_t>(i)] = static_cast<Scalar>(std::max(0.0, row.variance));
    }
  });
}

// The members that are defined in filter_posterior.cpp are instantiated there.
template class KalmanFilter<float>;
template class KalmanFilter<double>;

}  // namespace dyad
