#pragma once

#include <optional>

#include "base/random.h"
#include "model/signed_factors.h"
#include "solvers/irls/irls_options.h"
#include "solvers/irls/weighted_regression.h"

namespace dyad {

/// Log-det IRLS (see `LogDetIrls`) in O(n k d) operations per data pass and O((n + d) k) memory. The kernel with
/// S = U diag(b) U' + eps I is (x_a'S x_b)^2 = eps^2 (x_a'x_b)^2 + 2 eps (x_a'x_b)(p_a'B p_b) + (p_a'B p_b)^2 with
/// p = U'x, B = diag(b). The first term is replaced by its diagonal, because (x_a'x_b)^2 is of relative size 1/d for
/// a != b. One iteration is then the ridge regression of `WeightedRegression`, followed by the k + 1 leading eigenpairs
/// of the estimated M by a block Krylov method:
///
///     eps = min(eps, |lambda|_(k+1)),   b_j = max(|lambda_j| - eps, 0)
///
/// The zero diagonal of a model is treated as a free one. Not thread-safe; passes run on all threads of the pool.
class MatrixFreeIrls {
 public:
  /// `rows` refers to an operator and `pool` is not owned; the caller keeps both alive.
  MatrixFreeIrls(const ObservedRows& rows, IrlsOptions options, ThreadPool& pool);

  /// Iterates until eps has decreased below a fraction of |lambda|_k, which is smaller in each call, or does not
  /// decrease any more. Returns the rank-k part of the estimate; null if a previous call ended without progress, or if
  /// the estimate is not finite.
  std::optional<SignedFactors<double>> next_candidate();

  /// Number of passes over all rows.
  [[nodiscard]] Index passes() const { return regression_.passes(); }

 private:
  /// One iteration. Returns false if the estimate is not finite.
  bool iterate();
  /// Sets U, lambda and eps from the leading eigenpairs (bilinear: singular triplets) of the estimate.
  bool update_factors();
  [[nodiscard]] SignedFactors<double> candidate() const;

  IrlsOptions options_;
  Sides sides_;
  Random random_;
  WeightedRegression regression_;
  RegressionCoefficients coefficients_;
  RowMajorMatrix<double> basis_;  ///< leading vectors of the last iteration, k + 2 columns; start of the next
  Vector<double> spectrum_;       ///< lambda, leading k, by descending absolute value
  double eps_;                    ///< infinity before the first iteration
  double candidate_eps_ratio_;    ///< eps / |lambda|_k at which the next candidate is returned
  double last_eps_;               ///< at the last iteration that made progress
  int iterations_ = 0;
  int stalled_ = 0;
  bool is_finished_ = false;
};

}  // namespace dyad
