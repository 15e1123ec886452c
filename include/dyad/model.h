#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Parameters of a second-order model.
///
/// Symmetric: y = b + w'x + x'Mx with M = U diag(lambda) U', U'U = I, of low rank and of any sign.
/// Bilinear:  y = b + w'x + v'z + x'Mz with M = U diag(s) V', U'U = V'V = I, for rows [x, z] whose first `left_dim`
/// features are x.
///
///     dyad::Model<double> model(3, 1);                 // zero model: three features, rank 1
///     model.factors = {1, 0, 0};                       // U
///     model.spectrum = {2};                            // lambda
///     model.predict(rows, predictions);                // 2 x_0^2
template <typename Scalar>
struct Model {
  /// Creates the zero model.
  /// \param dim       number of features
  /// \param rank      number of factors
  /// \param left_dim  bilinear: number of features of x; 0: symmetric
  Model(Index dim, Index rank, Index left_dim = 0);

  Index left_dim = 0;            ///< bilinear: number of features of x; 0: symmetric
  Scalar intercept = 0;          ///< b
  std::vector<Scalar> weights;   ///< w, one per feature; bilinear: [w, v]
  std::vector<Scalar> factors;   ///< U, dim x rank, row-major; bilinear: U above V
  std::vector<Scalar> spectrum;  ///< lambda or s, by decreasing absolute value
  std::vector<Scalar> squares;   ///< symmetric: the coefficient of x_j^2 is M_jj + squares[j]; empty: M_jj

  /// Number of features.
  [[nodiscard]] Index dim() const { return static_cast<Index>(weights.size()); }
  /// Number of factors.
  [[nodiscard]] Index rank() const { return static_cast<Index>(spectrum.size()); }
  /// True for x'Mz, false for x'Mx.
  [[nodiscard]] bool is_bilinear() const { return left_dim > 0; }

  /// Returns M_ij in O(rank). Bilinear: i is a feature of x, j is a feature of z, both counted from 0.
  /// \throws std::invalid_argument if an index is out of range
  [[nodiscard]] Scalar interaction(Index i, Index j) const;

  /// Returns the mean of the second-order terms for independent features of mean 0 and variance 1: tr(M) plus the sum
  /// of `squares`; bilinear: 0.
  [[nodiscard]] Scalar mean_interaction() const;

  /// True if all parameters are finite.
  [[nodiscard]] bool is_finite() const;

  /// Writes one prediction per row, in O(rank) per non-zero.
  /// \throws std::invalid_argument if sizes disagree
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;
};

/// Converts the model to another precision.
template <typename To, typename From>
Model<To> model_cast(const Model<From>& model) {
  Model<To> result(0, 0, model.left_dim);
  result.intercept = static_cast<To>(model.intercept);
  result.weights.assign(model.weights.begin(), model.weights.end());
  result.factors.assign(model.factors.begin(), model.factors.end());
  result.spectrum.assign(model.spectrum.begin(), model.spectrum.end());
  result.squares.assign(model.squares.begin(), model.squares.end());
  return result;
}

extern template struct Model<float>;
extern template struct Model<double>;

}  // namespace dyad
