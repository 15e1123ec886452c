#include "solvers/anova/noise/noise_fit.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "solvers/anova/noise/variance_function.h"

namespace dyad {
namespace {

/// Rows of the fit of the variance function; their leverages take p^2 / 2 multiply-adds per row. Tables with more rows
/// are not fitted again with weights.
constexpr Index max_residual_rows = 4096;
/// The variance of the noise is constant for fewer rows.
constexpr Index min_residual_rows = 30;
/// Iterations of REML with weights; they start at the variances without weights.
constexpr Index reweighted_iterations = 3;
/// VarianceOptions::max_growth of these iterations.
constexpr double reweighted_growth = 2;

/// Residuals of a sample of the rows. Censored targets beyond which the prediction lies have the residual 0.
ResidualRows residuals(const TermFit& fit, const AnovaModel& model) {
  // Rows for the leverages, which take p^2 / 2 multiply-adds per row. The error of a standard deviation is 1 / sqrt(2
  // n).
  const std::size_t total = fit.predictor().size();
  const std::size_t count = std::min(total, static_cast<std::size_t>(max_residual_rows));
  ResidualRows rows;
  rows.noise_variance = fit.noise_variance();
  for (const ColumnTable::Column& column : fit.table().columns)
    rows.table.columns.push_back({column.is_categorical, {}});
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = k * total / count;
    for (std::size_t c = 0; c < fit.table().columns.size(); ++c)
      rows.table.columns[c].values.push_back(fit.table().columns[c].values[i]);
    rows.predictions.push_back(fit.predictor()[i]);
    rows.residuals.push_back(fit.rows().z[i] - fit.predictor()[i]);
    rows.counts.push_back(fit.response().repetitions(i));
    rows.precisions.push_back(fit.response().precision(i));
  }
  rows.posterior_variances.resize(count);
  model.predict_variances(rows.table, rows.posterior_variances);
  return rows;
}

}  // namespace

void fit_noise(TermFit& fit, AnovaFit& result) {
  if (fit.table().columns.empty()) return;
  ResidualRows rows = residuals(fit, result.model);
  if (std::ssize(rows.residuals) < min_residual_rows) return;
  result.model.log_noise = fit_log_noise(rows, fit.pool());
  if (!result.model.log_noise.is_zero() && std::ssize(fit.predictor()) <= max_residual_rows && !fit.was_interrupted()) {
    std::vector<double> variances(fit.predictor().size());
    result.model.predict_noise(fit.table(), variances);
    for (double& variance : variances) variance = 1 / std::sqrt(variance);
    fit.reweight(variances, reweighted_iterations, reweighted_growth);
    AnovaFit reweighted = fit.make_result();
    ResidualRows new_rows = residuals(fit, reweighted.model);
    const double loss = new_rows.held_out_variance();
    if (loss < rows.held_out_variance()) {
      reweighted.held_out_loss = std::sqrt(loss);
      reweighted.model.posterior.noise_variance = result.model.posterior.noise_variance;
      reweighted.model.log_noise = std::move(result.model.log_noise);
      result = std::move(reweighted);
      rows = std::move(new_rows);
      if (fit.options().progress)
        fit.options().progress({"weights of rows", result.log_evidence, result.held_out_loss});
    }
  }
  std::vector<double> noise(rows.residuals.size());
  result.model.predict_noise(rows.table, noise);
  result.model.log_noise.intercept += std::log(calibration_factor(rows, noise));
}

}  // namespace dyad
