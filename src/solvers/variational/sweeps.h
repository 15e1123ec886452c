#pragma once

#include <limits>
#include <vector>

#include <dyad/rows.h>
#include <dyad/types.h>

#include "base/thread_pool.h"
#include "likelihood/likelihood.h"
#include "linalg/simd.h"
#include "model/posterior.h"
#include "solvers/variational/feature_equations.h"
#include "solvers/variational/incidence.h"

/// Folder solvers/variational: variational inference for sparse rows in memory. `Incidence` stores the rows by row and
/// by feature, `FeatureEquations` the equations of one feature, `VariationalSweeps` the updates.

namespace dyad {

/// Coordinate ascent on the variational lower bound of the log marginal likelihood (ELBO), with an independent Gaussian
/// posterior N(m, v) of every parameter, for zero and free diagonals.
///
/// Given the parameters of all other features, a prediction is linear in the parameters theta of one feature,
/// f = f_rest + theta'g. The optimal posterior of theta has the precisions tau + alpha sum_i rho_i E[g_i^2]. Its means
/// solve (tau / alpha + sum_i rho_i E[g_i g_i']) m = sum_i rho_i E[g_i (y_i - f_rest)], up to one Gauss-Seidel sweep.
/// Here alpha is the noise precision, rho_i the weight of row i times the precision of its quadratic bound
/// (Likelihood::QuadraticBound), and tau a prior precision per kind of parameter: weights, squares and each factor.
/// The updates also estimate alpha, tau and the bounds (empirical Bayes).
///
/// Features that share no row are updated in parallel (`Incidence::color_classes`). Results do not depend on the number
/// of threads. Does not own the rows and the thread pool; the caller keeps them alive. Not thread-safe.
template <typename Scalar>
class VariationalSweeps {
 public:
  /// Rows of weight 0 are left out. Parameters with a variance of 0 in `start` (intercept, all weights) are not
  /// estimated.
  VariationalSweeps(const Rows<Scalar>& rows, LikelihoodPointer likelihood, const Posterior<Scalar>& start,
                    ThreadPool& pool);

  /// Runs the updates below in this order, `update_features` for every color class.
  void sweep();

  /// Recomputes the residuals, the noise precision and the quadratic bounds of all rows. Must be the first update.
  void update_residuals();
  void update_intercept();
  void update_features(std::size_t color_class);
  void update_priors();

  [[nodiscard]] std::size_t color_class_count() const { return rows_.color_classes.size(); }
  /// Lower bound of the log marginal likelihood, which no update decreases. Takes one pass over all rows.
  [[nodiscard]] double bound() const;

  [[nodiscard]] Posterior<Scalar> posterior() const;
  [[nodiscard]] double noise_variance() const { return 1 / noise_precision_; }
  [[nodiscard]] double total_weight() const { return total_weight_; }
  /// Prior precisions tau of each factor, of weights and of squares. The precision of an unused factor is large.
  [[nodiscard]] std::vector<double> prior_precisions() const;

  /// Estimated number of bytes that the sweeps need besides the rows.
  [[nodiscard]] static double estimate_bytes(double rows, double entries_per_row, Index rank);

 private:
  using Simd = FeatureEquations::Simd;
  using Values = FeatureEquations::Values;
  using Occurrences = typename Incidence<Scalar>::Occurrences;

  /// Mean and variance of a prediction under the posterior.
  struct PredictionMoments {
    double mean = 0;
    double variance = 0;
  };

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  /// Indices of the parameters of a feature in FeatureEquations: the factors, padded to `width_`, the weight, the
  /// square, padding to `stride_`.
  [[nodiscard]] Index weight_index() const { return width_; }
  [[nodiscard]] Index square_index() const { return width_ + 1; }
  /// Posterior of feature j: means of the factors, their variances, means of weight and square, their variances. The
  /// record of feature `dim` is 0.
  [[nodiscard]] const double* record(Index j) const { return records_.data() + j * 2 * stride_; }
  /// Offsets of the mean and the variance of a parameter in a record.
  [[nodiscard]] Index mean_offset(Index parameter) const { return parameter < width_ ? parameter : width_ + parameter; }
  [[nodiscard]] Index variance_offset(Index parameter) const {
    return parameter < width_ ? width_ + parameter : stride_ + parameter;
  }

  /// Copies the start to `records_`, and determines which parameters are estimated.
  void load(const Posterior<Scalar>& start);
  void update_feature(Index j, FeatureEquations& equations);
  /// Adds occurrences [first, first + count) of feature j to its equations.
  template <bool has_long_rows>
  void add_rows(Index j, Index first, Index count, FeatureEquations& equations) const;
  /// Updates the residuals and sums of the rows of occurrences [first, first + count) of feature j after its step.
  template <bool has_long_rows>
  void apply_step_to_rows(Index j, Index first, Index count, FeatureEquations& equations);
  /// Prefetches the rows and partners of the occurrences after occurrence e.
  void prefetch_after(const Occurrences& of, Index e) const;
  /// Computes E[g] of occurrences [first, first + count) of feature j. Adds the terms of the posterior variances of
  /// other features to the equations.
  template <bool has_long_rows>
  void compute_gradients(Index j, Index first, Index count, FeatureEquations& equations) const;
  /// Updates rows [first, first + count) and returns the sum of their weighted E[(y - f)^2].
  [[nodiscard]] double update_block_residuals(Index first, Index count);
  /// Expected log-likelihood bound of rows [first, first + count).
  [[nodiscard]] double block_bound(Index first, Index count) const;
  [[nodiscard]] PredictionMoments predict_pair(Index i) const;
  [[nodiscard]] PredictionMoments predict_row(Index i, double* sums) const;
  /// Sums visit(first, count) over blocks of rows. The blocks do not depend on the number of threads.
  template <typename Visit>
  [[nodiscard]] double sum_over_rows(Visit&& visit) const;

  LikelihoodPointer likelihood_;
  ThreadPool& pool_;
  Incidence<Scalar> rows_;
  double total_weight_ = 0;
  Index active_count_ = 0;  ///< number of features that occur in the rows
  Index rank_ = 0;
  Index width_ = 0;                ///< the rank, padded to a multiple of Simd::count
  Index stride_ = 0;               ///< number of parameters per feature, padded to a multiple of Simd::count
  std::vector<Index> parameters_;  ///< indices of the estimated parameters of a feature
  Diagonal diagonal_ = Diagonal::zero;
  bool has_weights_ = true;

  Values signs_;  ///< 0 beyond the rank
  double intercept_ = 0;
  double intercept_variance_ = 0;  ///< 0: the intercept is not estimated
  Values records_;                 ///< dim + 1 records of 2 stride_ numbers
  Values priors_;                  ///< prior precision tau of each parameter of a feature
  double noise_precision_ = 1;     ///< alpha

  CacheAlignedVector<double> residuals_;     ///< y - E[f] of each row, where y is the target of its quadratic bound
  ImplicitOnes<double> row_precisions_;      ///< rho of each row
  CacheAlignedVector<double> bound_points_;  ///< of each row: QuadraticBound::point; empty if not needed
  Values row_sums_;  ///< long rows only: per row and factor, the sums of m x, v x^2 and m v x^3 over its entries
};

}  // namespace dyad
