#pragma once

#include <span>
#include <vector>

#include <dyad/model.h>

namespace dyad {

/// Posterior of a model that is the average of samples: variances of its predictions and of the noise, and the
/// parameters of unknown features. Features and targets are scaled as those of the model. Vectors `by feature` have one
/// entry per feature of the model, followed by one per group of unknown features. Immutable after construction;
/// thread-safe.
struct SampledPosterior {
  Index samples = 0;  ///< number of samples in the average

  /// Variance of the linear predictor of a row: log v = log_variance + sum_j log_variances[j] x_j^2, by feature.
  double log_variance = 0;
  std::vector<double> log_variances;

  /// Regression: the logarithm of the noise variance of a row is log_noise + sum_j log_noise_factors[j] over its
  /// features. Posterior means and standard deviations, by feature. Deviations of 0: the feature has no factor. Empty
  /// for classes.
  double log_noise = 0;
  std::vector<double> log_noise_factors;
  std::vector<double> log_noise_deviations;

  /// Parameters of an unknown feature of each group, which has the value 1: its weight and its row of the factor matrix
  /// U (group-major).
  std::vector<double> unknown_weights;
  std::vector<double> unknown_factors;

  /// Logarithm of E[1/s_j] for a log-normal distribution of the noise factor 1/s_j of feature j.
  [[nodiscard]] double log_noise_term(std::size_t j) const {
    return log_noise_factors[j] + log_noise_deviations[j] * log_noise_deviations[j] / 2;
  }
  [[nodiscard]] Index group_count() const { return static_cast<Index>(unknown_weights.size()); }

  /// Linear predictor of a row with its variance and the noise variance of the target.
  struct Prediction {
    double mean = 0;
    double variance = 0;
    double noise = 0;
  };
  /// Predicts row i of `rows`, to which one unknown feature of each group in `unknown` is added. `mean`: prediction of
  /// the model without unknown features.
  [[nodiscard]] Prediction predict(const Model<double>& model, const Rows<double>& rows, Index i, double mean,
                                   std::span<const Index> unknown) const;

  /// Throws std::invalid_argument unless the sizes agree with the model and all numbers are finite.
  void validate(const Model<double>& model) const;
};

}  // namespace dyad
