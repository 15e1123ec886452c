#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "data/column_table.h"
#include "model/anova_model.h"

namespace dyad {

/// Residuals of a fit of the mean.
struct ResidualRows {
  ColumnTable table;
  std::vector<double> predictions;
  std::vector<double> residuals;
  std::vector<double> posterior_variances;  ///< of the predictions
  std::vector<double> counts;               ///< repetitions of the rows
  std::vector<double> precisions;           ///< weights of one repetition in the fit of the mean
  double noise_variance = 1;                ///< for precision 1

  /// Leverage of one repetition of row i.
  [[nodiscard]] double leverage(std::size_t i) const;
  /// Mean square of the leave-one-out residuals (PRESS; Allen 1974), given the variances of the priors.
  [[nodiscard]] double held_out_variance() const;
};

/// Fits log(v(x) / noise_variance) = a + sum_j g_j(x_j) + g(prediction), where v is the variance of the noise, to
/// squared residuals divided by 1 - leverage, by a Gamma regression with log link. Its IRLS weights are constant, so
/// that all steps use the same Gram matrix. The prior variances of the functions and the dispersion are estimated by
/// REML in each step. The result is zero if the evidence does not exceed that of a constant variance by
/// `min_noise_gain_nats`. The column of the result behind those of the table is the prediction.
AnovaFunctions fit_log_noise(const ResidualRows& rows, ThreadPool& pool);

/// Factor of the noise variances for which normal intervals cover the leave-one-out residuals. Residuals have heavier
/// tails than the normal distribution; the factor lies between those of the 68% and the 95% interval, so that their
/// coverages deviate equally. Tables with few rows: the mean square of standardized residuals, at least 1.
double calibration_factor(const ResidualRows& rows, const std::vector<double>& noise_variances);

}  // namespace dyad
