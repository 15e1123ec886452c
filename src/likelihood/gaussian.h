#pragma once

#include "likelihood/likelihood.h"

namespace dyad {

/// Gaussian likelihood y = f + noise, censored at the finite ends of the support. A target at an end means that the
/// uncensored target is at or beyond it, so that a prediction beyond the end has loss 0; any other prediction has the
/// squared loss. This is the limit of the Tobit likelihood (Tobin, 1958) for noise that is small compared to the
/// distance between f and the end.
class GaussianLikelihood final : public Likelihood {
 public:
  explicit GaussianLikelihood(Support support = {}) : support_(support) {}

  [[nodiscard]] Expansion expand(double y, double f) const override;
  [[nodiscard]] double loss(double y, double f) const override;
  /// Equals Likelihood::update(), without its virtual call of expand().
  [[nodiscard]] Update update(double y, double mean, double variance, double weight,
                              double noise_variance) const override;
  [[nodiscard]] double mean(double f) const override { return f; }
  [[nodiscard]] double link(double mean) const override { return mean; }
  [[nodiscard]] double mean_derivative(double) const override { return 1; }
  [[nodiscard]] double observed(double y) const override { return y; }
  [[nodiscard]] double score(double observed, double mean) const override;
  [[nodiscard]] double metric(double mean_score) const override;
  [[nodiscard]] const char* metric_name() const override { return "rmse"; }
  [[nodiscard]] double constant_score(double, double variance) const override { return variance; }
  [[nodiscard]] double constant_loss(double, double variance) const override { return variance / 2; }
  [[nodiscard]] double constant_mean(double sum, double weight) const override { return weight > 0 ? sum / weight : 0; }
  [[nodiscard]] double predictor_variance(double target_variance) const override;
  [[nodiscard]] bool has_identity_link() const override { return true; }
  [[nodiscard]] bool has_noise_variance() const override { return true; }
  [[nodiscard]] bool has_unit_curvature() const override { return !support_.is_bounded(); }
  [[nodiscard]] bool is_classification() const override { return false; }
  [[nodiscard]] Support support() const override { return support_; }
  [[nodiscard]] QuadraticBound bound(double y, double mean, double variance) const override;
  [[nodiscard]] bool needs_bound_points() const override { return support_.is_bounded(); }
  [[nodiscard]] double bound_value(double y, double point, double mean, double variance,
                                   double noise_precision) const override;

 private:
  /// True if the target is at an end of the support and the prediction is at or beyond it.
  [[nodiscard]] bool is_censored(double y, double f) const {
    return (y >= support_.high && f >= y) || (y <= support_.low && f <= y);
  }

  Support support_;
};

}  // namespace dyad
