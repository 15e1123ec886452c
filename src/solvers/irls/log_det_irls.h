#pragma once

#include <optional>
#include <vector>

#include "base/random.h"
#include "data/observed_rows.h"
#include "model/signed_factors.h"
#include "solvers/irls/irls_options.h"

namespace dyad {

/// Recovers a low-rank M of any signs from few rows without noise: iteratively reweighted least squares on a smoothed
/// log-determinant of M (Mohan and Fazel 2012), which needs neither signs nor a spectral start. The current S is the
/// prior covariance of M, cov(M) = S (x) S (bilinear: S_left (x) S_right). One iteration computes
///
/// \code
///   K_ab  = (x_a'S x_b)^2                        bilinear: (x_a'S_left x_b)(z_a'S_right z_b)
///   w     = (F'K^-1 F)^-1 F'K^-1 y               F: intercept, x and x^2, as far as the model has them
///   alpha = K^-1 (y - F w)
///   M     = S X'diag(alpha) X S = U diag(lambda) U'
///   eps   = min(eps, |lambda|_(k+1)),   S = U diag(max(|lambda|, eps)) U'
/// \endcode
/// The zero diagonal of a model is treated as a free one. Each iteration takes O(n^3 + n^2 d + n d^2 + d^3) operations
/// for n rows. Gauss-Newton refines the candidates. Copies the rows. Weights other than 0 have no effect. Not
/// thread-safe.
class LogDetIrls {
 public:
  LogDetIrls(const ObservedRows& rows, IrlsOptions options);

  /// Whether K is small enough to be stored and factorized, and M has more dimensions than its rank.
  static bool can_solve(const ObservedRows& rows, const ModelShape& shape);

  /// Iterates from S = I, and in later calls from a random perturbation of the last result, until eps vanishes or does
  /// not decrease any more. Returns the rank-k part of the result; null if K is singular, as with repeated rows.
  std::optional<SignedFactors<double>> next_candidate();

  /// Number of iterations of all candidates.
  [[nodiscard]] Index iterations() const { return iterations_; }

 private:
  /// One factor of M: rows of the side, basis U, and the diagonal s of S = U diag(s) U'.
  struct Side {
    RowMajorMatrix<double> X;
    RowMajorMatrix<double> U;
    Vector<double> s;

    /// X U diag(sqrt(s)), so that X S X' is its Gram matrix.
    [[nodiscard]] RowMajorMatrix<double> scaled_rows() const;
  };

  /// One iteration. Returns false, without a change, if K or M is not finite or K is not positive definite.
  bool iterate();
  void perturb();
  [[nodiscard]] SignedFactors<double> candidate() const;
  [[nodiscard]] bool is_bilinear() const { return options_.shape.is_bilinear(); }

  IrlsOptions options_;
  Random random_;
  Vector<double> targets_;
  RowMajorMatrix<double> flat_features_;  ///< F
  Side left_;
  Side right_;                ///< bilinear only
  Vector<double> flat_;       ///< w
  Vector<double> spectrum_;   ///< lambda, one per column of U, in any order; bilinear: singular values
  std::vector<Index> order_;  ///< positions in the spectrum by descending absolute value
  double eps_ = 0;
  Index iterations_ = 0;
  bool has_result_ = false;
};

}  // namespace dyad
