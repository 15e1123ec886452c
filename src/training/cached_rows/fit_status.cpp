#include "training/cached_rows/fit_status.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/sides.h"
#include "training/cached_rows/cached_fit.h"
#include "training/cached_rows/laplace_covariance.h"
#include "training/cached_rows/residual_structure.h"
#include "training/cached_rows/robust_fit.h"

namespace dyad {
namespace {

/// Sums over the rows of positive weight.
struct RowStatistics {
  Index count = 0;
  double target_variance = 0;
  double mean_squared_residual = 0;
  double negative_share = 0;  ///< of the sum of squared targets
};

RowStatistics compute_statistics(const ObservedRows& rows, const Vector<double>& residuals) {
  const Vector<double>& weights = rows.weights();
  RowStatistics statistics;
  statistics.count = (weights.array() > 0).count();
  const double total = std::max(weights.sum(), std::numeric_limits<double>::min());
  const double mean = weights.dot(rows.targets()) / total;
  statistics.target_variance = weights.dot((rows.targets().array() - mean).square().matrix()) / total;
  statistics.mean_squared_residual = weights.dot(residuals.cwiseAbs2()) / total;
  const double negative = weights.dot(rows.targets().cwiseMin(0).cwiseAbs2());
  const double squares = weights.dot(rows.targets().cwiseAbs2());
  statistics.negative_share = squares > 0 ? negative / squares : 0;
  return statistics;
}

/// Variance of the predictions for independent Gaussian features with the mean squares of the rows:
/// sum_j w_j^2 s_j + 2 sum_ij M_ij^2 s_i s_j (bilinear: without the factor 2).
double predicted_variance(const ObservedRows& rows, const SignedFactors<double>& parameters) {
  const Sides sides(rows.dim(), parameters.left_dim);
  Vector<double> moments = Vector<double>::Zero(1 + rows.dim());
  rows.X().add_gram_diagonal({0, rows.count()}, rows.weights().data(), moments);
  const Vector<double> squares = moments.tail(rows.dim()) / moments[0];
  const RowMajorMatrix<double> scaled = squares.cwiseSqrt().asDiagonal() * parameters.A;
  const Matrix<double> left = sides.left(scaled).transpose() * sides.left(scaled);
  const Matrix<double> right = sides.right(scaled).transpose() * sides.right(scaled);
  const auto signs = parameters.signs.asDiagonal();
  const double interactions = (signs * left * signs).cwiseProduct(right).sum();
  return squares.dot(parameters.weights.cwiseAbs2()) + (sides.is_bilinear() ? 1 : 2) * interactions;
}

/// Upper confidence limit of a variance, relative to its estimate from residuals of m degrees of freedom: m divided by
/// the 0.1% quantile of the chi-square distribution (Wilson and Hilferty 1931). Infinite for at most two degrees of
/// freedom, for which the approximation has no positive quantile.
double variance_limit_ratio(double degrees_of_freedom) {
  constexpr double normal_quantile = -3.09;
  const double spread = 2 / (9 * std::max(1.0, degrees_of_freedom));
  const double root = 1 - spread + normal_quantile * std::sqrt(spread);
  return root > 0 ? 1 / (root * root * root) : std::numeric_limits<double>::infinity();
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

/// Whether a fit of rank k + 1 has less than half of the noise variance.
bool gains_by_larger_rank(const ObservedRows& rows, NewtonOptions options, double noise_variance, ThreadPool& pool) {
  constexpr double max_variance_ratio = 0.5;
  if (options.shape.rank >= options.shape.max_rank()) return false;
  options.shape.rank += 1;
  if ((rows.weights().array() > 0).count() <= options.shape.unknowns()) return false;
  const CachedFit larger = fit_cached_rows(rows, options, StartSearch::brief, pool);
  return larger.is_exact || larger.noise_variance < max_variance_ratio * noise_variance;
}

}  // namespace

std::string status_text(FitStatus status, Index outliers) {
  switch (status) {
    case FitStatus::converged:
      return "converged";
    case FitStatus::too_few_rows:
      return "there are not more rows than unknowns; use more rows or a smaller rank";
    case FitStatus::not_identifiable:
      return "the rows do not determine all unknowns; remove columns that are zero or linear combinations of others, "
             "or "
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
  // Largest share of the variance of the targets in the mean squared leave-one-out residual. Local minima of phase
  // retrieval have at least 0.33 and fits with noise of 0.07 standard deviations of y at most 0.12, with 1.4 to 2 rows
  // per unknown.
  constexpr double max_unexplained_share = 0.3;
  // With more rows per unknown, the noise variance approximates the leave-one-out residuals.
  constexpr double max_rows_per_unknown_of_leverages = 3;
  // Largest ratio of the variance of the predictions for independent features to that of the targets, for few rows. A
  // local minimum has large coefficients in the directions in which the rows vary least: ratios of at least 2.7 with
  // 1.2 and 1.4 rows per unknown, where fits with noise have at most 1.9.
  constexpr double max_variance_ratio = 2;
  // Residuals of fits with fewer rows per unknown have neither a reliable distribution nor reliable moments.
  constexpr double min_rows_per_unknown_of_residuals = 2;
  const Vector<double> residuals = compute_residuals(rows, parameters, pool);
  const Index unknowns = options.shape.unknowns();
  FitDiagnosis diagnosis;
  const bool has_few_rows = static_cast<double>((rows.weights().array() > 0).count()) <
                            min_rows_per_unknown_of_residuals * static_cast<double>(unknowns);
  const auto is_exact_fit = [&](const RowStatistics& statistics) {
    return statistics.mean_squared_residual <= exact_residual_share(rows.X().epsilon()) * statistics.target_variance;
  };
  const bool can_have_outliers = !has_few_rows && !is_exact_fit(compute_statistics(rows, residuals));
  const Vector<double> weights = can_have_outliers ? exclude_outliers(residuals, rows, unknowns) : rows.weights();
  diagnosis.outliers = (rows.weights().array() > 0).count() - (weights.array() > 0).count();
  const ObservedRows used = rows.with_weights(weights);
  const RowStatistics statistics = compute_statistics(used, residuals);
  const bool is_exact = is_exact_fit(statistics);
  const auto count = static_cast<double>(statistics.count);
  const double noise_variance =
      is_exact ? 0 : statistics.mean_squared_residual * count / std::max(1.0, count - static_cast<double>(unknowns));
  diagnosis.noise = std::sqrt(noise_variance);
  double new_row_error = noise_variance;
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
    if (!is_exact &&
        static_cast<double>(statistics.count) < max_rows_per_unknown_of_leverages * static_cast<double>(unknowns))
      new_row_error = covariance.leave_one_out_error(used, residuals);
    if (shape.linear) diagnosis.weight_errors = covariance.weight_errors();
    if (shape.rank == 1 && !shape.is_bilinear()) diagnosis.factor_errors = covariance.factor_errors();
  }
  if (diagnosis.outliers > 0) return conclude(FitStatus::outliers);
  if (is_exact) return conclude(FitStatus::converged);
  // Local minima fit few rows beyond the unknowns with small residuals, by chance.
  if (has_few_rows) new_row_error *= variance_limit_ratio(count - static_cast<double>(unknowns));
  const bool predicts_poorly =
      new_row_error > max_unexplained_share * statistics.target_variance ||
      (has_few_rows && predicted_variance(used, parameters) > max_variance_ratio * statistics.target_variance);
  if (has_few_rows) return conclude(predicts_poorly ? FitStatus::local_minimum : FitStatus::converged);
  if (find_residual_structure(used, residuals, options.shape, options.seed, pool).is_significant())
    return conclude(FitStatus::rank_too_small);
  if (!predicts_poorly) return conclude(FitStatus::converged);
  return conclude(gains_by_larger_rank(used, options, noise_variance, pool) ? FitStatus::rank_too_small
                                                                            : FitStatus::local_minimum);
}

}  // namespace dyad
