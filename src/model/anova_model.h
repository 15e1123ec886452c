#pragma once

#include <span>
#include <vector>

#include "data/column_table.h"
#include "linalg/matrix.h"

namespace dyad {

/// Values of the basis functions `index` and `index + 1` of an axis; all other basis functions are 0. `second` is 0 if
/// `index` is the last basis function.
struct HatWeights {
  Index index = 0;
  double first = 0;
  double second = 0;
};

/// Basis functions of one column. Numeric columns have hat functions (linear B-splines) on knots, constant beyond the
/// first and the last knot. With `has_tails`, the function x - knot beyond the first knot precedes them, and that
/// beyond the last knot follows them, so that functions can continue as straight lines. An indicator of missing values
/// comes last if `has_missing_level`. Categorical columns have one indicator per level; categories without a level have
/// no basis function.
struct AnovaAxis {
  Index column = 0;  ///< index in ColumnTable::columns
  bool is_categorical = false;
  bool is_discrete = false;        ///< every distinct value of the column has a knot or a level
  bool has_missing_level = false;  ///< numeric columns
  bool has_tails = false;          ///< numeric columns: the first and the last basis function of the knots are tails
  std::vector<double> knots;       ///< numeric columns: strictly increasing
  std::vector<Index> levels;       ///< categorical columns: category numbers, by decreasing frequency

  /// Number of basis functions.
  [[nodiscard]] Index size() const {
    return static_cast<Index>(is_categorical ? levels.size() : knots.size()) + (has_tails ? 2 : 0) +
           (has_missing_level ? 1 : 0);
  }
  /// Basis function of the first knot.
  [[nodiscard]] Index first_knot() const { return has_tails ? 1 : 0; }
  /// True for the basis functions beyond the first and the last knot.
  [[nodiscard]] bool is_tail(Index function) const {
    return has_tails && (function == 0 || function == static_cast<Index>(knots.size()) + 1);
  }
  [[nodiscard]] HatWeights evaluate(double value) const;
  friend bool operator==(const AnovaAxis&, const AnovaAxis&) = default;
};

/// A function of one column or of two columns: a linear combination of the basis functions of its axes, or of their
/// products.
struct AnovaBlock {
  std::vector<Index> axes;         ///< one or two indices of AnovaModel::axes
  std::vector<double> values;      ///< coefficients, one per basis function; pairs: row-major, first axis by row
  std::vector<double> deviations;  ///< posterior standard deviations of `values`
  double variance = 0;             ///< of the function over the training rows, in units of the scaled target

  [[nodiscard]] bool is_pair() const { return axes.size() == 2; }
};

/// Posterior covariance of the functions of an AnovaModel given the variances of their priors. With the basis functions
/// phi(x) of all blocks, the variance of the sum of all functions is |T (F' phi(x) - c)|^2 + v, where F is block
/// diagonal, T is lower triangular with (T'T)^-1 the precision of the coefficients of F, c centers phi, and v is the
/// variance of the intercept.
struct AnovaPosterior {
  std::vector<RowMajorMatrix<double>> factors;  ///< F: one matrix per block, coefficients x directions
  RowMajorMatrix<double> root;                  ///< T: directions x directions, lower triangular
  Vector<double> center;                        ///< c
  double intercept_variance = 0;                ///< v
  double noise_variance = 0;                    ///< of the scaled target; 0 for classes

  [[nodiscard]] bool is_empty() const { return factors.empty(); }
};

/// Sum of an intercept and functions of columns and of pairs of columns. Const member functions are thread-safe.
struct AnovaFunctions {
  double intercept = 0;
  std::vector<AnovaAxis> axes;
  std::vector<AnovaBlock> blocks;

  /// Writes one value per row of `table`.
  void predict(const ColumnTable& table, std::span<double> predictions) const;
  [[nodiscard]] bool is_finite() const;
  [[nodiscard]] bool is_zero() const { return intercept == 0 && blocks.empty(); }
  /// Number of coefficients of a block.
  [[nodiscard]] Index block_size(const AnovaBlock& block) const;
  /// Calls visit(coefficient, weight) for each basis function of the block that is not 0.
  template <typename Visit>
  void for_each_weight(const AnovaBlock& block, const HatWeights* hats, Visit&& visit) const {
    const HatWeights& first = hats[block.axes[0]];
    if (!block.is_pair()) {
      if (first.first != 0) visit(first.index, first.first);
      if (first.second != 0) visit(first.index + 1, first.second);
      return;
    }
    const HatWeights& second = hats[block.axes[1]];
    const Index stride = axes[static_cast<std::size_t>(block.axes[1])].size();
    const auto visit_row = [&](Index row, double weight) {
      if (weight * second.first != 0) visit(row * stride + second.index, weight * second.first);
      if (weight * second.second != 0) visit(row * stride + second.index + 1, weight * second.second);
    };
    if (first.first != 0) visit_row(first.index, first.first);
    if (first.second != 0) visit_row(first.index + 1, first.second);
  }
  /// Basis functions of all axes at row i of the table.
  void evaluate_axes(const ColumnTable& table, Index i, std::vector<HatWeights>& hats) const;
};

/// Second-order model in function space (smoothing-spline ANOVA; Wahba 1990; Gu 2013):
/// y = b + sum_j f_j(x_j) + sum_ij f_ij(x_i, x_j), with f_j piecewise linear and f_ij piecewise bilinear on knots.
/// Predicts the scaled target, or the log-odds of the positive class. Const member functions are thread-safe.
struct AnovaModel : AnovaFunctions {
  AnovaPosterior posterior;  ///< empty: no error bars
  /// Logarithm of the variance of the observation noise, relative to posterior.noise_variance. The column behind those
  /// of the table is the prediction. Zero: the variance is constant.
  AnovaFunctions log_noise;

  /// Writes the posterior variance of each prediction, without observation noise.
  void predict_variances(const ColumnTable& table, std::span<double> variances) const;
  /// Writes the variance of the observation noise of each row.
  void predict_noise(const ColumnTable& table, std::span<double> variances) const;
};

}  // namespace dyad
