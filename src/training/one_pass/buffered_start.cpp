#include "training/one_pass/buffered_start.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace dyad {
namespace {

/// Sizes of the kept block at which it is solved, in numbers of unknowns. Without noise the first ones are enough.
constexpr std::array attempts{1.5, 2.0, 3.0, 4.5};
constexpr double enough_with_noise = 3;

}  // namespace

NewtonOptions newton_options(const KalmanOptions& kalman) {
  NewtonOptions newton;
  newton.shape = kalman.shape;
  newton.likelihood = kalman.likelihood;
  newton.seed = kalman.seed;
  return newton;
}

template <typename Scalar>
void BufferedStart<Scalar>::begin(const KalmanOptions& kalman, bool sparse) {
  kalman_ = kalman;
  sparse_ = sparse;
  // What sign restarts would solve with hardly any rows more than unknowns, one start alone often will not.
  while (!options_.sign_restarts && attempts[attempt_] < enough_with_noise) ++attempt_;
  if (can_afford(attempt_)) kept_.emplace();
}

template <typename Scalar>
void BufferedStart<Scalar>::stop() {
  kept_.reset();
  last_fit_.reset();
}

template <typename Scalar>
Index BufferedStart<Scalar>::rows_for(std::size_t attempt) const {
  return static_cast<Index>(std::ceil(attempts[attempt] * static_cast<double>(kalman_.shape.unknowns())));
}

template <typename Scalar>
Index BufferedStart<Scalar>::rows_missing() const {
  return std::max<Index>(1, rows_for(attempt_) - kept_->count());
}

template <typename Scalar>
double BufferedStart<Scalar>::work_of_look(double rows) const {
  return rows * kalman_.entries * static_cast<double>(kalman_.shape.rank + 1);
}

template <typename Scalar>
bool BufferedStart<Scalar>::can_afford(std::size_t attempt) const {
  constexpr double looks = 300;  // that a fit takes at least
  if (attempt >= attempts.size()) return false;
  const auto rows = static_cast<double>(rows_for(attempt));
  return RowCache<Scalar>::bytes_for(rows, kalman_.entries, sparse_) <= options_.memory &&
         looks * work_of_look(rows) <= options_.most_work - work_;
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::keep(const Rows<Scalar>& rows,
                                                                                 const Prior& prior,
                                                                                 const FeatureScales& scales) {
  kept_->append(rows);
  if (kept_->count() < rows_for(attempt_)) return std::nullopt;
  std::optional<Start> start = solve(prior, scales);
  ++attempt_;
  if ((start && start->exact) || !can_afford(attempt_)) stop();
  return start;
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::finish(const Prior& prior,
                                                                                   const FeatureScales& scales) {
  std::optional<Start> start;
  if (kept_ && !last_fit_ && kept_->count() >= rows_for(0)) start = solve(prior, scales);
  stop();
  return start;
}

template <typename Scalar>
std::optional<typename BufferedStart<Scalar>::Start> BufferedStart<Scalar>::solve(const Prior& prior,
                                                                                  const FeatureScales& scales) {
  NewtonOptions newton = newton_options(kalman_);
  newton.restarts = options_.sign_restarts;
  newton.interrupted = options_.interrupted;
  const auto count = static_cast<double>(kept_->count());
  const double looks = (options_.most_work - work_) / work_of_look(count);
  if (looks < static_cast<double>(newton.most_products)) newton.most_products = static_cast<Index>(looks);
  NewtonFit fit;
  {
    const ScaledRows<Scalar> scaled(*kept_, {scales.all().begin(), scales.all().end()});
    fit = gauss_newton(kept_->view(kalman_.shape.dim), newton, pool_, last_fit_ ? &*last_fit_ : nullptr);
  }
  last_fit_ = fit.parameters;
  extra_row_reads_ += fit.products * kept_->count();
  work_ += static_cast<double>(fit.products) * work_of_look(count);
  if (!scales.are_one()) fit.parameters.scale_features(scales.inverse());
  const Rows<Scalar> rows = kept_->view(kalman_.shape.dim);
  const auto unknowns = static_cast<double>(kalman_.shape.unknowns());
  if (!fit.finite || !(fit.exact || count >= enough_with_noise * unknowns)) return std::nullopt;
  constexpr double least_noise = 1e-30;
  const double spare = std::max(1.0, count - unknowns);
  const double noise = std::max(fit.residual_squares * count / spare, least_noise);
  return Start{KalmanFilter<Scalar>(kalman_, prior, fit.parameters.cast<Scalar>(), scales.all(), noise, spare, rows),
               rows.count(), fit.exact};
}

template class BufferedStart<float>;
template class BufferedStart<double>;

}  // namespace dyad
