#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// Symmetric: y = b + w'x + x'Mx with M = U diag(lambda) U', U'U = I, of low rank and of any sign.
/// Bilinear:  y = b + w'x + v'z + x'Mz with M = U diag(s) V', for rows [x, z] whose first `left_dim` features are x.
template <typename Scalar>
struct Model {
  /// The zero model: nothing but zeros, in `dim` features with `rank` factors.
  Model(Index dim, Index rank, Index left_dim = 0);

  Index left_dim = 0;            ///< bilinear: features of x; 0: symmetric
  Scalar intercept = 0;          ///< b
  std::vector<Scalar> weights;   ///< w, one per feature; bilinear: [w, v]
  std::vector<Scalar> factors;   ///< U, dim x rank, row-major: feature j owns the rank numbers from j * rank on;
                                 ///< bilinear: U above V
  std::vector<Scalar> spectrum;  ///< lambda or s, strongest first
  std::vector<Scalar> squares;   ///< symmetric, and not empty: the coefficient of x_j^2 is M_jj + squares[j]

  [[nodiscard]] Index dim() const { return static_cast<Index>(weights.size()); }
  [[nodiscard]] Index rank() const { return static_cast<Index>(spectrum.size()); }
  [[nodiscard]] bool is_bilinear() const { return left_dim > 0; }

  /// M_ij, in O(rank). Bilinear: i counts the features of x, j those of z.
  [[nodiscard]] Scalar interaction(Index i, Index j) const;

  /// The mean of all second-order terms for independent standardised features.
  [[nodiscard]] Scalar mean_of_interactions() const;

  [[nodiscard]] bool is_finite() const;

  /// Writes one prediction per row, in O(rank) for each non-zero.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;
};

/// The same model in another precision.
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
