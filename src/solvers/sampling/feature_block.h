#pragma once

#include <vector>

#include "base/random.h"
#include "solvers/sampling/feature_columns.h"
#include "solvers/sampling/sampler_state.h"

namespace dyad {

/// Joint draw of all parameters theta_j = (v_j, w_j, u_j) of one feature.
///
/// Given all other parameters, the prediction of row i is linear in theta_j, with the gradient
/// h = (x (q - x v_j), x, x^2); bilinear models have x q' instead of x (q - x v_j), where q' belongs to the other side.
/// The conditional distribution is Gaussian with
///   precision  P = alpha sum_i omega_i h_i h_i' + diag(lambda),
///   mean       P^-1 (alpha sum_i omega_i h_i (e_i + h_i'theta_j) + lambda mu).
/// Features with many rows are drawn by a Cholesky factorization of P, and features with few rows by one of the size of
/// the number of rows (Bhattacharya, Chakraborty and Mallick 2016, "Fast sampling with Gaussian scale mixture priors in
/// high-dimensional regression"). Contains the buffers of one thread.
class FeatureBlock {
 public:
  explicit FeatureBlock(Index width);

  /// Which numbers of a row belong to the feature.
  struct Side {
    Index read = 0;   ///< offset of the q that multiplies v_j in RowStates
    Index write = 0;  ///< offset of the q that contains x v_j
    bool is_symmetric = true;
  };

  /// The prior of the feature, by place, and the noise precision alpha.
  struct Prior {
    const double* means = nullptr;
    const double* precisions = nullptr;
    double noise_precision = 1;
    bool has_square = false;
  };

  /// Draws the parameters of feature j and updates the rows that contain it.
  void draw(const FeatureColumns::Column& column, Index j, const Prior& prior, const Side& side,
            FeatureParameters& parameters, RowStates& rows, Random& random);

 private:
  /// Rows per block of sums in single precision. The gradients of a block of rank 8 take 4 KB of the L1 cache.
  /// Sensitivity: docs/constants.md.
  static constexpr Index max_block_rows = 64;
  /// Largest number of rows of draw_from_few_rows(), if it is at most half of the number of parameters. Sensitivity:
  /// docs/constants.md.
  static constexpr Index max_few_rows = 8;

  template <Index fixed_width>
  void add_rows(const FeatureColumns::Column& column, Index first, Index count, const float* factors, const Side& side,
                const RowStates& rows);
  template <Index fixed_width>
  void apply_change(const FeatureColumns::Column& column, const float* old_factors, const float* changes,
                    const Side& side, RowStates& rows);
  void accumulate(const FeatureColumns::Column& column, const float* factors, const Side& side, const RowStates& rows);
  void solve_and_draw(const Prior& prior, Random& random);
  void draw_from_few_rows(const FeatureColumns::Column& column, const float* factors, const Prior& prior,
                          const Side& side, const RowStates& rows, Random& random);
  /// Adds the sums of a block to the equations.
  void collect_block();
  [[nodiscard]] double& gram(Index a, Index b) { return gram_[static_cast<std::size_t>(a * size_ + b)]; }

  Index width_;
  Index rank_ = 0;
  Index size_ = 0;  ///< number of parameters of the current feature
  bool has_square_ = false;
  CacheAlignedVector<float> gradients_;           ///< x (q - x v_j) of the rows of a block
  CacheAlignedVector<float> weighted_gradients_;  ///< omega times the gradients
  CacheAlignedVector<float> block_gram_;          ///< width x width
  CacheAlignedVector<float> block_cross_;         ///< sums of omega g x, omega g x^2, omega g e: 3 x width
  double block_powers_[4] = {};                   ///< sums of omega x^2, x^3, x^4 (in this order from 1)
  double block_residuals_[2] = {};                ///< sums of omega e x, omega e x^2
  std::vector<double> gram_;                      ///< lower triangle of sum omega h h', then its Cholesky factor
  std::vector<double> right_side_;
  std::vector<double> theta_;
  CacheAlignedVector<float> changes_;
  CacheAlignedVector<float> old_factors_;
};

}  // namespace dyad
