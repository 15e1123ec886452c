#pragma once

#include <span>
#include <vector>

#include "solvers/anova/anova_fit.h"
#include "solvers/anova/terms.h"

namespace dyad {

/// Working responses and weights of the least-squares problem: the targets; targets with censored ends replaced by the
/// prediction where it lies beyond the end; or those of iteratively reweighted least squares for classes.
class Response {
 public:
  Response(std::span<const double> targets, std::span<const double> weights, const AnovaOptions& options);

  /// Updates the responses at the values of the linear predictor. `keeps_weights` (classes): the weights stay those of
  /// the last call, and so does the Gram matrix. The gradient of the log-likelihood is exact also with such weights:
  /// W (z - f) = y - p.
  void update(std::span<const double> predictor, bool keeps_weights = false);
  [[nodiscard]] const WorkingRows& rows() const { return rows_; }

  [[nodiscard]] bool is_censored() const { return is_censored_; }
  /// Value of the linear predictor before the first fit: 0, or the log-odds of the positive class.
  [[nodiscard]] std::vector<double> start_predictor() const;
  /// Scale of the prior variances: the variance of the target, or that of log-odds.
  [[nodiscard]] double prior_variance() const { return prior_variance_; }
  [[nodiscard]] double start_noise_variance() const { return is_classification_ ? 1 : 0.5 * prior_variance_; }

 private:
  std::vector<double> targets_;
  std::vector<double> weights_;  ///< repetition counts; empty: 1
  bool is_classification_;
  double low_;
  double high_;
  bool is_censored_ = false;
  bool has_fit_ = false;  ///< update() was called with a fitted predictor
  double prior_variance_ = 1;
  WorkingRows rows_;
};

}  // namespace dyad
