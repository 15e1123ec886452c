#include "training/multi_pass/filter_from_fit.h"

#include <algorithm>

namespace dyad {

template <typename Scalar>
KalmanFilter<Scalar> filter_from_fit(const RefineContext<Scalar>& context, const Posterior<double>& fit,
                                     const std::vector<double>& scales, std::optional<double> held_out_squares) {
  const KalmanOptions& kalman = context.kalman();
  const Prior& prior = context.one_pass().first_prior();
  const Rows<Scalar> rows = context.view(context.rows);
  double count = 0;
  for (Index i = 0; i < rows.count(); ++i)
    count += context.options.exact_weights ? static_cast<double>(rows.weight(i)) : 1.0;
  const Posterior<Scalar> posterior = fit.template cast<Scalar>();
  if (posterior.has_variances()) return KalmanFilter<Scalar>(kalman, prior, posterior, scales, count);
  const auto with_noise = [&](double noise) {
    return KalmanFilter<Scalar>(kalman, prior, posterior.means, scales, noise, count, rows);
  };
  // With few rows per unknown the residuals of the fit underestimate the noise. The squared residuals of held-out rows
  // are the sum of noise and posterior variance.
  constexpr double many_rows_per_unknown = 10;
  const double squares = held_out_squares.value_or(context.one_pass().noise_variance());
  if (count >= many_rows_per_unknown * static_cast<double>(kalman.shape.unknowns()) || squares <= fit.noise_variance)
    return with_noise(fit.noise_variance);
  std::vector<Scalar> predictions(static_cast<std::size_t>(rows.count()));
  std::vector<Scalar> variances(predictions.size());
  with_noise(squares).predict(rows, predictions, variances);
  double mean_variance = 0;
  for (const Scalar variance : variances)
    mean_variance += static_cast<double>(variance) / static_cast<double>(rows.count());
  return with_noise(std::max(fit.noise_variance, squares * squares / (squares + mean_variance)));
}

template KalmanFilter<float> filter_from_fit(const RefineContext<float>&, const Posterior<double>&,
                                             const std::vector<double>&, std::optional<double>);
template KalmanFilter<double> filter_from_fit(const RefineContext<double>&, const Posterior<double>&,
                                              const std::vector<double>&, std::optional<double>);

}  // namespace dyad
