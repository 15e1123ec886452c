#pragma once

#include "likelihood/likelihood.h"

namespace dyad {

/// Two classes with log-odds f. Targets above 0 are the positive class.
class BernoulliLikelihood : public Likelihood {
 public:
  [[nodiscard]] Expansion expand(double y, double f) const override;
  [[nodiscard]] double loss(double y, double f) const override;
  /// A row that counts once, or whose weight * variance is at most 4, takes the default step. Beyond 4, the inverse of
  /// the largest slope of the logistic function, such steps may diverge: a confidently misclassified row moves f by
  /// weight * variance. The mean then moves to the mode of the posterior, with the Laplace approximation there.
  [[nodiscard]] Update update(double y, double mean, double variance, double weight,
                              double noise_variance) const override;
  [[nodiscard]] double mean(double f) const override;
  [[nodiscard]] double link(double mean) const override;
  [[nodiscard]] double mean_slope(double mean) const override { return mean * (1 - mean); }
  [[nodiscard]] double observed(double y) const override { return y > 0 ? 1 : 0; }
  [[nodiscard]] double score(double observed, double mean) const override { return log_loss(observed, mean); }
  [[nodiscard]] double figure(double mean_score) const override { return mean_score; }
  [[nodiscard]] const char* figure_name() const override { return "logloss"; }
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
