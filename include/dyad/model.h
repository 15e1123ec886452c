#pragma once

#include <span>
#include <vector>

#include <dyad/rows.h>

namespace dyad {

/// y = b + w'x + x'Mx with M = U diag(lambda) U', U'U = I: symmetric, of low rank and of any sign.
template <typename Scalar>
struct Model {
  /// The zero model: nothing but zeros, in `dim` features with `rank` factors.
  Model(Index dim, Index rank);

  Scalar intercept = 0;          ///< b
  std::vector<Scalar> weights;   ///< w, one per feature
  std::vector<Scalar> factors;   ///< U, dim x rank, row-major: feature j owns the rank numbers from j * rank on
  std::vector<Scalar> spectrum;  ///< lambda, strongest first

  [[nodiscard]] Index dim() const { return static_cast<Index>(weights.size()); }
  [[nodiscard]] Index rank() const { return static_cast<Index>(spectrum.size()); }

  /// M_ij, in O(rank).
  [[nodiscard]] Scalar interaction(Index i, Index j) const;

  /// The trace of M.
  [[nodiscard]] Scalar trace() const;

  [[nodiscard]] bool is_finite() const;

  /// Writes one prediction per row, in O(rank) for each non-zero.
  void predict(const Rows<Scalar>& rows, std::span<Scalar> predictions) const;
};

extern template struct Model<float>;
extern template struct Model<double>;

}  // namespace dyad
