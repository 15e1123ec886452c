#include "training/cached_rows/fit_status.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "training/cached_rows/laplace_covariance.h"
#include "training/cached_rows/residual_structure.h"
#include "training/cached_rows/robust_fit.h"

namespace dyad {
namespace {

/// Sums over the rows of positive weight.
struct RowStatistics {
  Index count = 0;
  double weight = 0;
  double target_variance = 0;
  double mean_squared_residual = 0;
  double negative_share = 0;  ///< of the sum of squared targets
};

RowStatistics compute_statistics(const ObservedRows& rows, const Vector<double>& residuals) {
  const Vector<double>& weights = rows.weights();
  RowStatistics statistics;
  statistics.count = (weights.array() > 0).count();
  statistics.weight = weights.sum();
  const double total = std::max(statistics.weight, std::numeric_limits<double>::min());
  const double mean = weights.dot(rows.targets()) / total;
  statistics.target_variance = weights.dot((rows.targets().array() - mean).square().matrix()) / total;
  statistics.mean_squared_residual = weights.dot(residuals.cwiseAbs2()) / total;
  const double negative = weights.dot(rows.targets().cwiseMin(0).cwiseAbs2());
  const double squares = weights.dot(rows.targets().cwiseAbs2());
  statistics.negative_share = squares > 0 ? negative / squares : 0;
  return statistics;
}

/// The parameters without factors of negligible size, which have no effect on M.
SignedFactors<double> drop_zero_factors(SignedFactors<double> parameters, Index& rank) {
  constexpr double min_relative_square = 1e-9;  // of the squared norm, relative to the largest: rounding errors of M
  const Vector<double> squares = parameters.A.colwise().squaredNorm();
  rank = 0;
  for (Index c = 0; c < parameters.rank(); ++c)
    if (squares[c] > min_relative_square * squares.maxCoeff()) {
      parameters.A.col(rank) = parameters.A.col(c).eval();
      parameters.signs[rank++] = parameters.signs[c];
    }
  parameters.A.conservativeResize(parameters.A.rows(), rank);
  parameters.signs.conservativeResize(rank);
  return parameters;
}

}  // namespace

std::string status_text(FitStatus status, Index outliers) {
  switch (status) {
    case FitStatus::converged:
      return "converged";
    case FitStatus::too_few_rows:
      return "there are not more rows than unknowns; use more rows or a smaller rank";
    case FitStatus::not_identifiable:
      return "the rows do not determine all unknowns; remove columns that are zero or linear combinations of others, or "
             "use more varied rows";
    case FitStatus::rank_too_small:
      return "the residuals depend on further directions; use a larger rank";
    case FitStatus::inconsistent_sign:
      return "targets are negative, but the model has positive values only; check the targets, or use the kind sensing";
    case FitStatus::local_minimum:
      return "no start converged to a fit that predicts new rows; use more rows";
    case FitStatus::outliers:
      return fmt::format("{} rows are outliers and were excluded", outliers);
  }
  return {};
}

FitDiagnosis diagnose_fit(const ObservedRows& rows, const NewtonOptions& options,
                          const SignedFactors<double>& parameters, ThreadPool& pool) {
  // Noise of a quarter of the standard deviation of the targets gives the negative targets of a positive model 3% of
  // the sum of squares.
  constexpr double max_negative_share = 0.1;
  // Share of the variance of the targets in the generalized cross-validation error (Craven and Wahba 1979), rss / n /
  // (1 - p/n)^2. A local minimum of few rows interpolates them and does not predict others.
  constexpr double max_unexplained_share = 0.5;
  // Rows per unknown below which such a fit can have residuals with an eigenvalue of any size.
  constexpr double min_rows_per_unknown_of_structure = 2;
  const Vector<double> residuals = compute_residuals(rows, parameters, pool);
  const Index unknowns = options.shape.unknowns();
  FitDiagnosis diagnosis;
  const Vector<double> weights = exclude_outliers(residuals, rows.weights(), unknowns);
  diagnosis.outliers = (rows.weights().array() > 0).count() - (weights.array() > 0).count();
  const ObservedRows used = rows.with_weights(weights);
  const RowStatistics statistics = compute_statistics(used, residuals);
  const bool is_exact = statistics.mean_squared_residual <= exact_residual_share(rows.X().epsilon()) * statistics.target_variance;
  const double degrees_of_freedom = std::max(1.0, statistics.weight - static_cast<double>(unknowns));
  const double noise_variance =
      is_exact ? 0 : statistics.mean_squared_residual * statistics.weight / degrees_of_freedom;
  diagnosis.noise = std::sqrt(noise_variance);
  const auto conclude = [&](FitStatus status) {
    diagnosis.status = status;
    return diagnosis;
  };
  if (statistics.count <= unknowns) return conclude(FitStatus::too_few_rows);
  if (options.shape.positive && statistics.negative_share > max_negative_share)
    return conclude(FitStatus::inconsistent_sign);
  ModelShape shape = options.shape;
  const SignedFactors<double> nonzero = drop_zero_factors(parameters, shape.rank);
  if (shape.rank > 0 && LaplaceCovariance::can_compute(rows, shape)) {
    const LaplaceCovariance covariance(used, shape, nonzero, noise_variance);
    if (!covariance.is_identifiable()) return conclude(FitStatus::not_identifiable);
    diagnosis.matrix_errors = covariance.matrix_errors();
    if (shape.linear) diagnosis.weight_errors = covariance.weight_errors();
    if (shape.rank == 1 && !shape.is_bilinear()) diagnosis.factor_errors = covariance.factor_errors();
  }
  if (diagnosis.outliers > 0) return conclude(FitStatus::outliers);
  if (is_exact) return conclude(FitStatus::converged);
  const double remaining = degrees_of_freedom / statistics.weight;
  const bool predicts_poorly = statistics.mean_squared_residual / (remaining * remaining) >
                               max_unexplained_share * statistics.target_variance;
  const bool has_few_rows = static_cast<double>(statistics.count) <
                            min_rows_per_unknown_of_structure * static_cast<double>(unknowns);
  if (predicts_poorly && has_few_rows) return conclude(FitStatus::local_minimum);
  if (find_residual_structure(used, residuals, options.shape, options.seed, pool).is_significant())
    return conclude(FitStatus::rank_too_small);
  return conclude(predicts_poorly ? FitStatus::local_minimum : FitStatus::converged);
}

}  // namespace dyad
