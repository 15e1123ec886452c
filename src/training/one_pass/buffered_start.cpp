#include "training/one_pass/buffered_start.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/median.h"
#include "training/cached_rows/residuals.h"

namespace dyad {
namespace {

/// Sizes of the buffer at which it is fitted, in rows per unknown. Without noise, 10 of 10 fits succeed at 1.5
/// for the condition numbers 1, 5 and 100 (docs/method.md). The larger sizes are for rows with noise. From 10 rows per
/// unknown on, the filter loses little to least squares.
constexpr std::array fit_rows_per_unknown{1.5, 2.0, 3.0, 4.5, 7.0, 10.0};
/// Largest entry of it for models with linear terms on real data, whose later rows the filter learns as well.
constexpr double max_rows_per_unknown_without_search = 4.5;
/// Rows per unknown from which a fit that is not exact is used as a start. Without a search for starts, the first fit
/// has at least this size. Sensitivity: docs/constants.md.
constexpr double min_rows_per_unknown_with_noise = 3;
/// Minimum number of passes over the buffer that a fit needs. Rows are buffered only if the work limit allows as many.
/// Sensitivity: docs/constants.md.
constexpr double min_passes_per_fit = 300;
/// Lower bound of the noise variance. For targets of size 1 the squares of double rounding errors are about 1e-32.
constexpr double min_buffered_noise_variance = 1e-30;

}  // namespace

NewtonOptions newton_options(const KalmanOptions& kalman) {
  NewtonOptions newton;
  newton.shape = kalman.shape;
  newton.likelihood = kalman.likelihood;
  newton.seed = kalman.seed;
  return newton;
}

template <typename Scalar>
void BufferedStart<Scalar>::start(const KalmanOptions& kalman, bool sparse) {
  kalman_ = kalman;
  sparse_ = sparse;
  // Without a search for starts, fits with few rows per unknown often end in a local minimum.
  while (!options_.searches_starts && fit_rows_per_unknown[attempt_] < min_rows_per_unknown_with_noise) ++attempt_;
  // A brief search of phase retrieval rarely succeeds with fewer than two rows per unknown.
  constexpr double min_rows_per_unknown_of_phase = 2;
  while (kalman.shape.is_phase_retrieval() && fit_rows_per_unknown[attempt_] < min_rows_per_unknown_of_phase)
    ++attempt_;
  if (can_afford(attempt_)) buffer_.emplace();
}

template <typename Scalar>
void BufferedStart<Scalar>::stop() {
  buffer_.reset();
  last_fit_.reset();
}

template <typename Scalar>
Index BufferedStart<Scalar>::rows_for(std::size_t attempt) const {
  return static_cast<Index>(std::ceil(fit_rows_per_unknown[attempt] * static_cast<double>(kalman_.shape.unknowns())));
}

template <typename Scalar>
Index BufferedStart<Scalar>::rows_until_next_fit() const {
  return std::max<Index>(1, rows_for(attempt_) - buffer_->count());
}

template <typename Scalar>
double BufferedStart<Scalar>::work_per_pass(double rows) const {
  return rows * kalman_.entries_per_row * static_cast<double>(kalman_.shape.rank + 1);
}

template <typename Scalar>
bool BufferedStart<Scalar>::can_afford(std::size_t attempt) const {
  if (attempt >= fit_rows_per_unknown.size()) return false;
  if (!options_.searches_starts && fit_rows_per_unknown[attempt] > max_rows_per_unknown_without_search) return false;
  const auto rows = static_cast<double>(rows_for(attempt));
  return RowCache<Scalar>::bytes_for(rows, kalman_.entries_per_row, sparse_) <= options_.memory &&
         min_passes_per_fit * work_per_pass(rows) <= options_.max_work - work_;
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::append(const Rows<Scalar>& rows,
                                                                                   const Prior& prior,
                                                                                   const FeatureScales& scales) {
  buffer_->append(rows);
  // From half of the size on, the final size is allocated at once: growth by doubling would allocate more.
  if (!sparse_ && 2 * buffer_->count() >= rows_for(attempt_))
    buffer_->reserve_dense(rows_for(attempt_), kalman_.shape.dim);
  if (buffer_->count() < rows_for(attempt_)) return std::nullopt;
  // A fit that searched at 3 rows per unknown is a sufficient start at larger sizes.
  const bool searches = options_.searches_starts && (fit_rows_per_unknown[attempt_] <= min_rows_per_unknown_with_noise);
  std::optional<Start> start = fit(prior, scales, searches ? StartSearch::brief : StartSearch::none);
  ++attempt_;
  if ((start && start->is_exact) || !can_afford(attempt_)) stop();
  return start;
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::finish(const Prior& prior,
                                                                                   const FeatureScales& scales) {
  std::optional<Start> start;
  const Index min_rows = options_.searches_starts ? kalman_.shape.unknowns() + 1 : rows_for(0);
  const bool is_fitted = !options_.searches_starts && buffer_ && buffer_->count() == fitted_rows_;
  const bool has_work_left =
      buffer_ && min_passes_per_fit * work_per_pass(static_cast<double>(buffer_->count())) <= options_.max_work - work_;
  if (buffer_ && !is_fitted && has_work_left && buffer_->count() >= min_rows) {
    start = fit(prior, scales, options_.searches_starts ? StartSearch::thorough : StartSearch::none);
    if (start) start->is_final = options_.searches_starts;
  } else if (buffer_ && options_.diagnoses && buffer_->count() < min_rows) {
    diagnosis_.emplace().status = FitStatus::too_few_rows;
  }
  stop();
  return start;
}

template <typename Scalar>
bool BufferedStart<Scalar>::predicts_new_rows(const ObservedRows& rows) const {
  // Of the absolute deviations of the targets, which are less sensitive to outliers than squares. For phase retrieval
  // with Gaussian features, a signal with correlation 0.5 or 0.9 to the true one has the share 1.3 or 0.65, and the
  // true minimum for two rows per unknown with noise of 0.2 standard deviations of the targets has 0.37.
  constexpr double max_unexplained_share = 0.6;
  const Index new_rows = rows.count() - fitted_rows_;
  if (new_rows == 0) return true;
  const Vector<double> targets = rows.targets().tail(new_rows);
  std::vector<double> sorted(targets.begin(), targets.end());
  const double center = median(sorted);
  const double residuals = compute_residuals(rows, *last_fit_, pool_).tail(new_rows).lpNorm<1>();
  return residuals < max_unexplained_share * (targets.array() - center).abs().sum();
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::fit(const Prior& prior,
                                                                                const FeatureScales& scales,
                                                                                StartSearch search) {
  NewtonOptions newton = newton_options(kalman_);
  newton.interrupted = options_.interrupted;
  const auto count = static_cast<double>(buffer_->count());
  const auto unknowns = static_cast<double>(kalman_.shape.unknowns());
  const bool is_large = count >= min_rows_per_unknown_with_noise * unknowns;
  const double affordable_passes = (options_.max_work - work_) / work_per_pass(count);
  if (affordable_passes < static_cast<double>(newton.max_passes))
    newton.max_passes = static_cast<Index>(affordable_passes);
  CachedFit result;
  {
    const ScaledRows<Scalar> scaled(*buffer_, {scales.all().begin(), scales.all().end()});
    const ObservedRows rows(buffer_->view(kalman_.shape.dim));
    if (options_.searches_starts && last_fit_ && !predicts_new_rows(rows)) {
      last_fit_.reset();
      if (search == StartSearch::none) search = StartSearch::brief;
    }
    result = fit_cached_rows(rows, newton, search, pool_, last_fit_ ? &*last_fit_ : nullptr);
    const bool is_last = result.is_exact || search == StartSearch::thorough || !can_afford(attempt_ + 1);
    if (is_last && options_.diagnoses && result.is_finite)
      diagnosis_ = diagnose_fit(rows, newton, result.parameters, pool_);
  }
  if (result.is_finite) last_fit_ = result.parameters;
  fitted_rows_ = buffer_->count();
  extra_row_reads_ += result.passes * buffer_->count();
  work_ += static_cast<double>(result.passes) * work_per_pass(count);
  if (!scales.are_one()) result.parameters.scale_features(scales.inverse());
  const bool is_reliable = diagnosis_ && diagnosis_->status == FitStatus::converged;
  const bool is_used = result.is_exact || is_large || (search == StartSearch::thorough && is_reliable);
  if (!result.is_finite || !is_used) return std::nullopt;
  const double degrees_of_freedom = std::max(1.0, count - unknowns);
  const double noise = std::max(result.noise_variance, min_buffered_noise_variance);
  const Vector<Scalar> weights = result.weights.cast<Scalar>();
  const Rows<Scalar> rows =
      buffer_->view(kalman_.shape.dim).weighted({weights.data(), static_cast<std::size_t>(weights.size())});
  return Start{KalmanFilter<Scalar>(kalman_, prior, result.parameters.cast<Scalar>(), scales.all(), noise,
                                    degrees_of_freedom, rows),
               rows.count(), result.is_exact, false};
}

template class BufferedStart<float>;
template class BufferedStart<double>;

}  // namespace dyad
