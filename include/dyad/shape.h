#pragma once

#include <dyad/types.h>

namespace dyad {

/// Special cases of the second-order model.
enum class Kind {
  gfm,       ///< generalized factorization machine, y = b + w'x + x'Mx
  sensing,   ///< symmetric rank-one matrix sensing, y = x'Mx
  phase,     ///< phase retrieval, y = (a'x)^2; a is identified up to its sign
  bilinear,  ///< y = b + w'x + v'z + x'Mz: asymmetric matrix sensing, inductive matrix completion
};

/// Coefficient of the square x_j^2 in a symmetric model.
enum class Diagonal {
  tied,  ///< M_jj, as in the generalized factorization machine of Lin and Ye (2016)
  zero,  ///< 0, as in the classic factorization machine: only pairs i != j interact
  free,  ///< one parameter per feature, independent of M
};

/// Dimensions of a second-order model, and which of its parameters are estimated:
///
///     y = b + w'x + x'Mx         M symmetric, of rank k
///     y = b + w'x + v'z + x'Mz   bilinear: rows [x, z], M of rank k
///
/// The options of every solver contain one shape. Example:
///
///     dyad::ModelShape shape = dyad::ModelShape::of(dyad::Kind::sensing);
///     shape.dim = 100;
///     shape.rank = 3;
///     shape.validate();
struct ModelShape {
  Index dim = 0;                       ///< number of features; bilinear: of x and z together
  Index left_dim = 0;                  ///< bilinear: number of features of x, which come first; 0: symmetric
  Index rank = 8;                      ///< k
  bool linear = true;                  ///< estimate w (and v); false for rank-one matrix sensing and phase retrieval
  bool intercept = true;               ///< estimate b
  bool positive = false;               ///< symmetric: M is positive semidefinite
  Diagonal diagonal = Diagonal::tied;  ///< coefficients of the squares

  /// Returns the shape of a model of this kind. `dim`, `left_dim` and `rank` keep their defaults (phase: rank 1).
  static ModelShape of(Kind kind);

  /// True for x'Mz, false for x'Mx.
  [[nodiscard]] bool is_bilinear() const { return left_dim > 0; }
  /// True for rank-one measurements y = x'Mx, without linear terms.
  [[nodiscard]] bool is_measurement() const { return !linear && !intercept; }
  /// True for y = (a'x)^2.
  [[nodiscard]] bool is_phase_retrieval() const { return is_measurement() && positive && rank == 1; }
  /// Largest possible rank of M.
  [[nodiscard]] Index max_rank() const;
  /// Degrees of freedom: kd - k(k-1)/2 (bilinear: k(d1 + d2 - k)) of M, plus the number of entries of w, b and the free
  /// squares.
  [[nodiscard]] Index unknowns() const;

  /// Throws std::invalid_argument that names the invalid field and its allowed values.
  void validate() const;
};

}  // namespace dyad
