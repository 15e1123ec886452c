#include "training/multi_pass/filter_from_fit.h"

#include <algorithm>

namespace dyad {
namespace {

/// Number of rows per unknown from which the residuals of the fit estimate the noise. Least squares with n rows and p
/// unknowns has the mean squared residual s2 (1 - p/n), so that the correction is at most 10% from there on.
/// Sensitivity: docs/constants.md.
constexpr double min_rows_per_unknown = 10;

}  // namespace

template <typename Scalar>
KalmanFilter<Scalar> filter_from_fit(const MultiPassContext<Scalar>& context, const Posterior<double>& fit,
                                     const std::vector<double>& scales,
                                     std::optional<double> held_out_squared_residual) {
  KalmanOptions kalman = context.kalman();
  kalman.shape.rank = fit.means.rank();
  const Prior& prior = context.one_pass().prior_variances();
  const Rows<Scalar> rows = context.view(context.rows);
  double count = 0;
  for (Index i = 0; i < rows.count(); ++i)
    count += context.options.has_exact_weights ? static_cast<double>(rows.weight(i)) : 1.0;
  const Posterior<Scalar> posterior = fit.template cast<Scalar>();
  if (posterior.has_variances()) return KalmanFilter<Scalar>(kalman, prior, posterior, scales, count);
  const auto with_noise = [&](double noise) {
    return KalmanFilter<Scalar>(kalman, prior, posterior.means, scales, noise, count, rows);
  };
  // With few rows per unknown the residuals of the fit underestimate the noise variance s2. The mean squared residual h
  // of held-out rows is s2 + v, where v is the mean posterior variance of the predictions. The variances below are
  // computed with noise h. They are proportional to the noise if the data dominates the prior, so that
  // h = s2 + v(h) s2 / h, hence s2 = h^2 / (h + v(h)).
  const double held_out = held_out_squared_residual.value_or(context.one_pass().noise_variance());
  if (count >= min_rows_per_unknown * static_cast<double>(kalman.shape.unknowns()) || held_out <= fit.noise_variance)
    return with_noise(fit.noise_variance);
  std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
  std::vector<Scalar> variances(predictions.size());
  with_noise(held_out).predict(rows, predictions, variances);
  double mean_variance = 0;
  for (const Scalar variance : variances)
    mean_variance += static_cast<double>(variance) / static_cast<double>(rows.count());
  return with_noise(std::max(fit.noise_variance, held_out * held_out / (held_out + mean_variance)));
}

template KalmanFilter<float> filter_from_fit(const MultiPassContext<float>&, const Posterior<double>&,
                                             const std::vector<double>&, std::optional<double>);
template KalmanFilter<double> filter_from_fit(const MultiPassContext<double>&, const Posterior<double>&,
                                              const std::vector<double>&, std::optional<double>);

}  // namespace dyad
