// Predictions and Kalman updates of the rows. Constructors and operations on the whole posterior: filter_posterior.cpp.

#include "solvers/kalman/filter.h"

#include <algorithm>
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

/// Compile-time properties of a model. `is_untied`: the diagonal of M is zero or free, so that the terms (A_jc x_j)^2
/// are subtracted. `is_hierarchical`: parameters are the sum of a group mean and a deviation.
template <bool untied, bool hierarchical>
struct RowForm {
  static constexpr bool is_untied = untied;
  static constexpr bool is_hierarchical = hierarchical;
};

}  // namespace

/// Sums over the entries of one row, and the prediction computed from them. Each array has one number per factor,
/// padded to full SIMD vectors; bilinear: first those of the left side, then those of the right side. Does not own the
/// memory.
template <typename Scalar>
struct KalmanFilter<Scalar>::Row {
  static constexpr std::size_t array_count = 7;

  Row(Scalar* memory, std::size_t size)
      : projection(memory),
        variance_0(projection + size),
        variance_1(variance_0 + size),
        variance_2(variance_1 + size),
        squared_variances(variance_2 + size),
        squared_terms(squared_variances + size),
        projection_gradient(squared_terms + size) {}

  /// Sets all sums to 0.
  void clear() {
    std::fill(projection, projection_gradient, Scalar(0));
    linear = linear_variance = 0;
  }

  Scalar* projection;           ///< p_c = sum_j A_jc x_j
  Scalar* variance_0;           ///< sum_j P_jc x_j^2
  Scalar* variance_1;           ///< sum_j P_jc x_j^2 (A_jc x_j); 0 if the diagonal is tied
  Scalar* variance_2;           ///< sum_j P_jc x_j^2 (A_jc x_j)^2; 0 if the diagonal is tied
  Scalar* squared_variances;    ///< sum_j (P_jc x_j^2)^2; hierarchical prior and untied diagonal only
  Scalar* squared_terms;        ///< sum_j (A_jc x_j)^2; 0 if the diagonal is tied
  Scalar* projection_gradient;  ///< df / dp_c
  Scalar linear = 0;            ///< sum of the linear and the square terms
  Scalar linear_variance = 0;   ///< variance of `linear`
  double prediction = 0;        ///< f
  double variance = 0;          ///< v = sum P g^2 over all parameters
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
  std::vector<Scalar> workspace(workspace_size());
  Row row(workspace.data(), row_width());
  // sum weight g^2 at the offset of each variance in the records.
  std::vector<double> sums(records_.size());
  double total_weight = 0;
  const Likelihood& likelihood = *options_.likelihood;
  const double noise = dispersion();
  for (Index i = 0; i < rows.count(); ++i) {
    accumulate_row<Form, true>(rows, i, row);
    finish_row(row, std::nullopt);
    const auto target = static_cast<double>(rows.targets()[static_cast<std::size_t>(i)]);
    const double weight = static_cast<double>(rows.weight(i)) * likelihood.expand(target, row.prediction).curvature;
    total_weight += weight;
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      const Scalar* A = record(j);
      const Scalar* mean = Form::is_hierarchical ? mean_record(group_of(j)) : nullptr;
      const auto entry = [&](Index c) { return Form::is_hierarchical ? A[c] + mean[c] : A[c]; };
      double* sum = sums.data() + j * stride_;
      const Scalar* projection_gradient = row.projection_gradient + side_of(j) * width_;
      for (Index c = 0; c < options_.shape.rank; ++c) {
        const auto g = static_cast<double>(
            (projection_gradient[c] -
             (Form::is_untied ? 2 * signs_[static_cast<std::size_t>(c)] * entry(c) * x : Scalar(0))) *
            x);
        sum[width_ + c] += weight * g * g;
      }
      const auto square = static_cast<double>(x) * static_cast<double>(x);
      sum[weight_offset() + 1] += weight * square;
      sum[square_offset() + 1] += weight * (square - options_.square_center) * (square - options_.square_center);
    });
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (sums[i] > 0 && records_[i] > 0)
      records_[i] = static_cast<Scalar>(1 / (1 / static_cast<double>(records_[i]) + sums[i] / noise));
  if (intercept_variance_ > 0) intercept_variance_ = 1 / (1 / intercept_variance_ + total_weight / noise);
}

/// Updates the parameters of one feature and adds their terms to the sums of the next row, in one pass over its record.
///
/// `A`: record of the feature. `mean`: record of the mean of its group; unused unless the prior is hierarchical.
/// `side_offset`: offset of the feature's side in the arrays of a Row; 0 if the diagonal is untied, because bilinear
/// models have a tied diagonal.
/// `updates`: theta += P g gain and P -= (P g)^2 innovation_precision, for the value `x` of the feature in the current
/// row. A group mean has the same gradient as the deviation. `accumulates`: adds to the sums of `next`, in which the
/// feature has the value `next_x`.
template <typename Scalar>
template <typename Form, bool updates, bool accumulates, typename Number>
inline void KalmanFilter<Scalar>::process_feature(Number* A, Number* mean, Index side_offset, Scalar x,
                                                  const Step& step, Scalar next_x, Row& next) const {
  using Simd = SimdVector<Scalar>;
  Number* P = A + width_;
  const Scalar* signs = signs_.data();
  const Simd two(Scalar(2));
  const Simd simd_x(x);
  const Simd gain(step.gain);
  const Simd innovation_precision(step.innovation_precision);
  const Simd min_ratio(min_variance_ratio<Scalar>);
  const Simd simd_next_x(next_x);
  Scalar* projection = next.projection + side_offset;
  Scalar* variance_0 = next.variance_0 + side_offset;
  Scalar* squared_terms = next.squared_terms;
  Scalar* variance_1 = next.variance_1;
  Scalar* variance_2 = next.variance_2;
  Scalar* squared_variances = next.squared_variances;
  const Index width = width_;
  for (Index c = 0; c < width; c += Simd::count) {
    Simd a(A + c);
    Simd p(P + c);
    Simd mean_a(Scalar(0));
    Simd mean_p(Scalar(0));
    if constexpr (Form::is_hierarchical) {
      mean_a = Simd(mean + c);
      mean_p = Simd(mean + width + c);
    }
    if constexpr (updates) {
      Simd g(step.projection_gradient + side_offset + c);
      if constexpr (Form::is_untied) g = g - two * Simd(signs + c) * (a + mean_a) * simd_x;
      const Simd gx = g * simd_x;
      const Simd Pg = p * gx;
      a = a + Pg * gain;
      p = cwise_max(p - Pg * Pg * innovation_precision, p * min_ratio);
      a.store(A + c);
      p.store(P + c);
      if constexpr (Form::is_hierarchical) {
        const Simd mean_Pg = mean_p * gx;
        mean_a = mean_a + mean_Pg * gain;
        mean_p = cwise_max(mean_p - mean_Pg * mean_Pg * innovation_precision, mean_p * min_ratio);
        mean_a.store(mean + c);
        mean_p.store(mean + width + c);
      }
    }
    if constexpr (accumulates) {
      const Simd total_a = Form::is_hierarchical ? a + mean_a : a;
      const Simd total_p = Form::is_hierarchical ? p + mean_p : p;
      const Simd ax = total_a * simd_next_x;
      const Simd pxx = total_p * simd_next_x * simd_next_x;
      ax.add_to(projection + c);
      pxx.add_to(variance_0 + c);
      if constexpr (Form::is_untied) {
        const Simd paxxx = pxx * ax;
        (ax * ax).add_to(squared_terms + c);
        paxxx.add_to(variance_1 + c);
        (paxxx * ax).add_to(variance_2 + c);
        if constexpr (Form::is_hierarchical) (pxx * pxx).add_to(squared_variances + c);
      }
    }
  }
  const auto center = static_cast<Scalar>(options_.square_center);
  // A parameter that f is linear in: parameter[0] is its mean, parameter[1] its variance, g its gradient.
  const auto process_linear = [&](Number* parameter, Scalar g, Scalar next_g) {
    if constexpr (updates) {
      const Scalar Pg = parameter[1] * g;
      parameter[0] += Pg * step.gain;
      parameter[1] =
          std::max(parameter[1] - Pg * Pg * step.innovation_precision, parameter[1] * min_variance_ratio<Scalar>);
    }
    if constexpr (accumulates) {
      next.linear += parameter[0] * next_g;
      next.linear_variance += parameter[1] * next_g * next_g;
    }
  };
  process_linear(A + weight_offset(), x, next_x);
  if constexpr (Form::is_hierarchical) process_linear(mean + weight_offset(), x, next_x);
  if (options_.shape.diagonal == Diagonal::free)
    process_linear(A + square_offset(), x * x - center, next_x * next_x - center);
}

/// Computes the sums of row i. `knows_all`: features without data are omitted. Otherwise, they have the prior
/// distribution and an absolute value of 1 (hierarchical prior).
template <typename Scalar>
template <typename Form, bool knows_all>
void KalmanFilter<Scalar>::accumulate_row(const Rows<Scalar>& rows, Index i, Row& row) const {
  row.clear();
  rows.for_each_entry(i, [&](Index j, Scalar x) {
    const Scalar* A = nullptr;
    const Scalar* mean = nullptr;
    const bool is_unknown = !knows_all && Form::is_hierarchical && j >= options_.shape.dim;
    if (!is_unknown) A = record(j);
    if constexpr (Form::is_hierarchical) {
      const Index group = is_unknown ? j - options_.shape.dim : group_of(j);
      mean = mean_record(group);
      if (is_unknown || !(A[scale_offset()] > 0)) {
        if (knows_all || x == 0) return;
        A = prior_record(group);
        x = std::copysign(Scalar(1), x);
      }
    }
    // The groups of a bilinear model are its sides.
    const Index side = is_unknown ? (options_.shape.left_dim > 0 ? j - options_.shape.dim : 0) : side_of(j);
    process_feature<Form, false, true>(A, mean, side * width_, 0, {}, x, row);
  });
}

/// Computes the prediction f, df/dp and v from the sums of a row. With s_c the sign of factor c, and D_c the sum of its
/// squared terms (0 if the diagonal is tied):
///   symmetric: f = b + linear + sum_c s_c (p_c^2 - D_c), df/dA_jc = (2 s_c p_c - 2 s_c A_jc x_j [untied]) x_j;
///   bilinear:  f = b + linear + sum_c s_c p_c q_c, with p of the left side and q of the right side.
/// `target` is used by phase retrieval only; without it, the gradient is that of f.
template <typename Scalar>
void KalmanFilter<Scalar>::finish_row(Row& row, std::optional<Scalar> target) const {
  const bool is_bilinear = options_.shape.left_dim > 0;
  double prediction = intercept_ + static_cast<double>(row.linear);
  double variance = intercept_variance_ + static_cast<double>(row.linear_variance);
  // Half of the variance of the products of two factors: sum_c sum_{i<j} 2 P_ic P_jc x_i^2 x_j^2 for symmetric models.
  double second_order = 0;
  for (Index c = 0; c < options_.shape.rank; ++c) {
    const auto left = static_cast<std::size_t>(c);
    const auto sign = static_cast<double>(signs_[left]);
    const auto p = static_cast<double>(row.projection[left]);
    if (is_bilinear) {
      const auto right = static_cast<std::size_t>(width_ + c);
      const auto q = static_cast<double>(row.projection[right]);
      prediction += sign * p * q;
      variance +=
          q * q * static_cast<double>(row.variance_0[left]) + p * p * static_cast<double>(row.variance_0[right]);
      row.projection_gradient[left] = static_cast<Scalar>(sign * q);
      row.projection_gradient[right] = static_cast<Scalar>(sign * p);
      if (Base::learns_prior())
        second_order += static_cast<double>(row.variance_0[left]) * static_cast<double>(row.variance_0[right]) / 2;
      continue;
    }
    double gradient = 2 * sign * p;
    // Phase retrieval: y - p^2 = (sqrt(y) - |p|)(sqrt(y) + |p|), so the secant gradient (sqrt(y) + |p|) sign(p) gives
    // the step for sqrt(y) = |p|. Unlike 2p, it does not vanish at p = 0.
    if (options_.shape.is_phase_retrieval() && target)
      gradient = std::copysign(std::sqrt(std::max(0.0, static_cast<double>(*target))) + std::abs(p), p);
    prediction += sign * (p * p - static_cast<double>(row.squared_terms[left]));
    // sum_j P_jc x_j^2 (gradient - correction A_jc x_j)^2
    const double correction = options_.shape.diagonal == Diagonal::tied ? 0 : 2 * sign;
    variance += std::max(0.0, gradient * gradient * static_cast<double>(row.variance_0[left]) -
                                  2 * gradient * correction * static_cast<double>(row.variance_1[left]) +
                                  correction * correction * static_cast<double>(row.variance_2[left]));
    row.projection_gradient[left] = static_cast<Scalar>(gradient);
    if (Base::learns_prior())
      second_order += std::max(0.0, std::pow(static_cast<double>(row.variance_0[left]), 2) -
                                        static_cast<double>(row.squared_variances[left]));
  }
  row.prediction = prediction;
  row.variance = variance + second_order;
}

template <typename Scalar>
void KalmanFilter<Scalar>::update_intercept(const Step& step) {
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
std::optional<typename KalmanFilter<Scalar>::Step> KalmanFilter<Scalar>::compute_step(const Row& row, Scalar target,
                                                                                      Scalar row_weight) const {
  const auto weight = static_cast<double>(row_weight);
  if (!(weight > 0) || !std::isfinite(row.prediction) || !std::isfinite(row.variance)) return std::nullopt;
  const Likelihood::Update update =
      options_.likelihood->update(static_cast<double>(target), row.prediction, row.variance, weight, dispersion());
  if (update.gain == 0 && update.innovation_precision == 0) return std::nullopt;
  return Step{row.projection_gradient, static_cast<Scalar>(update.gain),
              static_cast<Scalar>(update.innovation_precision)};
}

/// Updates the noise variance with a row that has a step.
template <typename Scalar>
void KalmanFilter<Scalar>::update_noise(const Row& row, Scalar target) {
  if (!options_.likelihood->has_noise_variance()) return;
  const double residual = static_cast<double>(target) - row.prediction;
  if (Base::learns_prior())
    log_noise_.observe(residual * residual, row.variance);
  else
    noise_.observe(residual * residual, row.variance);
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
  workspace_.resize(2 * workspace_size());
  Row row(workspace_.data(), row_width());
  Row next(workspace_.data() + workspace_size(), row_width());
  bool is_accumulated = false;  // whether `row` contains the sums of row i
  for (Index i = 0; i < rows.count(); ++i) {
    rows_ += 1;
    prefetch_row(rows, i + prefetch_distance_rows);
    if (options_.half_life > 0) forget(rows, i);
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    if (!is_accumulated) accumulate_row<Form, true>(rows, i, row);
    finish_row(row, target);
    predictions[static_cast<std::size_t>(i)] = finite_or_intercept(
        Form::is_hierarchical ? options_.likelihood->posterior_predictor(row.prediction, row.variance)
                              : row.prediction);
    const double noise = noise_variance();
    const std::optional<Step> step = compute_step(row, target, rows.weight(i));
    is_accumulated = false;
    if (!step) continue;
    update_noise(row, target);
    update_intercept(*step);
    if (!rows.is_sparse() && i + 1 < rows.count() && !(options_.half_life > 0)) {
      // One pass over all records updates them for this row and computes the sums of the next row.
      next.clear();
      const Scalar* x = rows.row(i);
      const Scalar* next_x = rows.row(i + 1);
      for (Index j = 0; j < options_.shape.dim; ++j) {
        if (Form::is_hierarchical && !(record(j)[scale_offset()] > 0)) continue;
        Scalar* mean = Form::is_hierarchical ? mean_record(group_of(j)) : nullptr;
        process_feature<Form, true, true>(record(j), mean, side_of(j) * width_, x[j], *step, next_x[j], next);
      }
      is_accumulated = true;
    } else {
      rows.for_each_entry(i, [&](Index j, Scalar x) {
        if (Form::is_hierarchical && !(record(j)[scale_offset()] > 0)) return;
        Scalar* mean = Form::is_hierarchical ? mean_record(group_of(j)) : nullptr;
        process_feature<Form, true, false>(record(j), mean, side_of(j) * width_, x, *step, 0, next);
      });
    }
    if (options_.likelihood->has_noise_variance()) {
      if (has_diverged(std::pow(static_cast<double>(target) - row.prediction, 2), noise + row.variance)) {
        reset_variances();
        is_accumulated = false;
      }
    }
    if (Form::is_hierarchical && rows_ >= next_prior_update_ && !holds_prior_) {
      Base::update_prior();
      next_prior_update_ = std::max(rows_ + min_prior_update_rows, std::floor(rows_ * prior_update_growth));
      is_accumulated = false;
    }
    if (is_accumulated) std::swap(row, next);
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
  workspace_.resize(2 * workspace_size());
  Row row(workspace_.data(), row_width());
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
    accumulate_row<Form, true>(rows, i, row);
    const Scalar target = rows.targets()[static_cast<std::size_t>(i)];
    finish_row(row, target);
    const std::optional<Step> step = compute_step(row, target, rows.weight(i));
    if (!step) continue;
    update_intercept(*step);
    rows.for_each_entry(i, [&](Index j, Scalar x) {
      if (Form::is_hierarchical && !(record(j)[scale_offset()] > 0)) return;
      Scalar* mean = Form::is_hierarchical ? mean_record(group_of(j)) : nullptr;
      process_feature<Form, true, false>(record(j), mean, side_of(j) * width_, x, *step, 0, row);
    });
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
  std::vector<Scalar> workspace(workspace_size());
  Row row(workspace.data(), row_width());
  for (Index i = 0; i < rows.count(); ++i) {
    with_form([&](auto form) { this->template accumulate_row<decltype(form), false>(rows, i, row); });
    finish_row(row, std::nullopt);
    predictions[static_cast<std::size_t>(i)] = finite_or_intercept(row.prediction);
    variances[static_cast<std::size_t>(i)] = static_cast<Scalar>(std::max(0.0, row.variance));
  }
}

// The members that are defined in filter_posterior.cpp are instantiated there.
template class KalmanFilter<float>;
template class KalmanFilter<double>;

}  // namespace dyad
