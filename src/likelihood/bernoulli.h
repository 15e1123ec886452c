#pragma once

#include "likelihood/likelihood.h"

namespace dyad {

// The folder likelihood contains the distributions of the target given the linear predictor. No other folder defines a
// loss.

/// Bernoulli likelihood with logit link, for two classes: P(y = +1) = logistic(f), so that f is the log-odds of the
/// positive class. Targets above 0 are the positive class.
class BernoulliLikelihood : public Likelihood {
 public:
  [[nodiscard]] Expansion expand(double y, double f) const override;
  [[nodiscard]] double loss(double y, double f) const override;
  /// Moment matching: with kappa = posterior_scale(variance) and p = logistic(kappa mean), the gain is kappa (t - p)
  /// for the observed class t in {0, 1}, and the innovation precision c = kappa^2 p (1 - p). A row of weight omega acts
  /// as omega rows, whose updates are those of a Gaussian observation: both numbers are multiplied by omega / (1 +
  /// (omega - 1) c variance). If weight > 1 and weight * variance > 4, the mean moves to the mode of the posterior
  /// instead, and the variance is that of the Laplace approximation at the mode. The limit 4 is the inverse of the
  /// largest derivative of the logistic function, from which on the multiplied gain can overshoot the mode.
  [[nodiscard]] Update update(double y, double mean, double variance, double weight,
                              double noise_variance) const override;
  /// kappa mean, with kappa = 1 / sqrt(1 + pi variance / 8) (MacKay 1992, "The evidence framework applied to
  /// classification networks").
  [[nodiscard]] double posterior_predictor(double mean, double variance) const override;
  [[nodiscard]] double mean(double f) const override;
  [[nodiscard]] double link(double mean) const override;
  [[nodiscard]] double mean_derivative(double mean) const override { return mean * (1 - mean); }
  [[nodiscard]] double observed(double y) const override { return y > 0 ? 1 : 0; }
  [[nodiscard]] double score(double observed, double mean) const override { return log_loss(observed, mean); }
  [[nodiscard]] double metric(double mean_score) const override { return mean_score; }
  [[nodiscard]] const char* metric_name() const override { return "logloss"; }
  [[nodiscard]] double constant_score(double mean, double variance) const override;
  [[nodiscard]] double constant_loss(double mean, double variance) const override;
  [[nodiscard]] double constant_mean(double sum, double weight) const override;
  [[nodiscard]] double predictor_variance(double) const override { return 1; }
  [[nodiscard]] bool has_identity_link() const override { return false; }
  [[nodiscard]] bool has_noise_variance() const override { return false; }
  [[nodiscard]] bool has_unit_curvature() const override { return false; }
  [[nodiscard]] bool is_classification() const override { return true; }
  [[nodiscard]] QuadraticBound bound(double y, double mean, double variance) const override;
  [[nodiscard]] bool needs_bound_points() const override { return true; }
  [[nodiscard]] double bound_value(double y, double point, double mean, double variance,
                                   double noise_precision) const override;
};

}  // namespace dyad
