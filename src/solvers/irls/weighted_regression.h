#pragma once

#include <functional>
#include <vector>

#include <dyad/shape.h>

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/sides.h"

namespace dyad {

/// Coefficients of `WeightedRegression`.
struct RegressionCoefficients {
  double intercept = 0;
  RowMajorMatrix<double> features;  ///< [w, V], one row per feature
  Vector<double> squares;           ///< of x_j^2; empty if the model has none
  Vector<double> core;              ///< entries of the k x k matrix C between the factors; symmetric: j <= l

  void set_zero(Index dim, Index rank, Index core_size, bool has_squares);
  void add(double scale, const RegressionCoefficients& other);
  /// *this = other + scale (*this).
  void scale_and_add(double scale, const RegressionCoefficients& other);
  [[nodiscard]] double dot(const RegressionCoefficients& other) const;
  void multiply_elementwise(const RegressionCoefficients& other);
};

/// Ridge regression of one iteration of `MatrixFreeIrls`. For factors U with strengths b and a level eps, a row x with
/// projections p = U'x has the features (symmetric models)
///
///     1, x, x^2          flat prior, as far as the model has them
///     sqrt(2 eps b_j) p_j x                        unit prior variance, coefficients V_j
///     sqrt(b_j b_l (j < l ? 2 : 1)) p_j p_l        unit prior variance, coefficients C_jl
///
/// and the noise variance eps^2 |x|^4. Bilinear models have the features sqrt(eps b_j) q_j x, sqrt(eps b_j) p_j z and
/// sqrt(b_j b_l) p_j q_l with q = U_right'z, and the noise variance eps^2 |x|^2 |z|^2. Solved by conjugate gradients
/// with a diagonal preconditioner. Does not own the rows and the pool; the caller keeps them alive. Not thread-safe.
class WeightedRegression {
 public:
  WeightedRegression(const ObservedRows& rows, const ModelShape& shape, ThreadPool& pool);

  /// Sets U (dim x k), b and eps. Reads the rows once.
  void set_prior(const RowMajorMatrix<double>& U, const Vector<double>& strengths, double eps);

  /// Minimizes the objective by conjugate gradients from `coefficients`, and computes the residuals. Ends when the
  /// preconditioned squared residual of the equations has decreased by `tolerance`^2, or after `max_iterations`.
  void solve(RegressionCoefficients& coefficients, double tolerance, int max_iterations);

  /// M Z for M = U C U' + tangent part (U, V) + sum_i h_i x_i x_i', with h = residual / |x|^4 (bilinear: M Z_right
  /// above M'Z_left). Reads the rows once.
  [[nodiscard]] RowMajorMatrix<double> multiply_estimate(const RegressionCoefficients& coefficients,
                                                         const RowMajorMatrix<double>& Z) const;

  /// Position of C_jl in RegressionCoefficients::core; symmetric models: j <= l.
  [[nodiscard]] Index core_index(Index j, Index l) const;
  [[nodiscard]] Index core_size() const;
  [[nodiscard]] bool has_squares() const { return has_squares_; }
  /// Number of passes over all rows.
  [[nodiscard]] Index passes() const { return passes_; }

 private:
  using AddBlock = std::function<void(IndexRange block, RegressionCoefficients& sums)>;

  [[nodiscard]] RegressionCoefficients sum_over_blocks(const AddBlock& add_block) const;
  [[nodiscard]] Vector<double> predict(IndexRange block, const RegressionCoefficients& coefficients) const;
  void add_transposed(IndexRange block, const Vector<double>& e, RegressionCoefficients& sums) const;
  /// Inverse of the diagonal of the normal equations. The diagonal of V is approximated by a product of two means.
  [[nodiscard]] RegressionCoefficients invert_diagonal() const;
  [[nodiscard]] RegressionCoefficients multiply_normal_matrix(const RegressionCoefficients& direction) const;
  [[nodiscard]] double core_scale(Index j, Index l) const;
  [[nodiscard]] Index rank() const { return strengths_.size(); }
  [[nodiscard]] const RowMajorMatrix<double>& right_projections() const { return sides_.is_bilinear() ? Q_ : P_; }

  ObservedRows rows_;
  ModelShape shape_;
  Sides sides_;
  ThreadPool& pool_;
  bool has_squares_;
  RowMajorMatrix<double> U_;
  Vector<double> strengths_;       ///< b
  Vector<double> tangent_scales_;  ///< sqrt(2 eps b), bilinear: sqrt(eps b)
  RowMajorMatrix<double> P_;       ///< projections of the rows on the left factors
  RowMajorMatrix<double> Q_;       ///< bilinear: on the right factors
  Vector<double> row_scales_;      ///< |x|^4, bilinear: |x|^2 |z|^2; infinite for rows of weight 0
  Vector<double> precisions_;      ///< inverse noise variances
  Vector<double> residuals_;
  mutable Index passes_ = 0;
};

}  // namespace dyad
