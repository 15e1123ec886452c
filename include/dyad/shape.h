#pragma once

#include <dyad/rows.h>

namespace dyad {

enum class Kind {
  gfm,       ///< y = b + w'x + x'Mx, the generalized factorization machine
  sensing,   ///< y = x'Mx, symmetric rank-one matrix sensing
  phase,     ///< y = (a'x)^2, phase retrieval: a is identified up to its sign
  bilinear,  ///< y = b + w'x + v'z + x'Mz, asymmetric sensing; the form of inductive matrix completion
};

/// Coefficient of the square x_j^2 in a symmetric model.
enum class Diagonal {
  tied,  ///< M_jj, as in the generalized factorization machine of Lin and Ye (2016)
  zero,  ///< 0, as in the classic factorization machine: only pairs i != j interact
  free,  ///< one parameter per feature, independent of M
};

/// Sizes of a second-order model, and which of its parts are estimated:
///
///     y = b + w'x + x'Mx         M symmetric, of rank k
///     y = b + w'x + v'z + x'Mz   bilinear: rows [x, z], M of rank k
///
/// Every solver takes its shape as one member of its options.
struct ModelShape {
  Index dim = 0;          ///< number of features; bilinear: those of x and z together
  Index left_dim = 0;     ///< bilinear: number of features of x, which come first; 0: symmetric
  Index rank = 8;         ///< k
  bool linear = true;     ///< estimate w (and v); false for rank-one matrix sensing and phase retrieval
  bool intercept = true;  ///< estimate b
  bool positive = false;  ///< symmetric: restrict M to positive semidefinite matrices
  Diagonal diagonal = Diagonal::tied;

  /// Which parts a model of this kind has. The sizes are left to the caller.
  static ModelShape of(Kind kind);

  [[nodiscard]] bool is_bilinear() const { return left_dim > 0; }
  /// Rank-one measurements y = x'Mx.
  [[nodiscard]] bool is_measurement() const { return !linear && !intercept; }
  /// y = (a'x)^2.
  [[nodiscard]] bool is_phase_retrieval() const { return is_measurement() && positive && rank == 1; }
  /// Largest possible rank of M.
  [[nodiscard]] Index max_rank() const;
  /// Degrees of freedom: kd - k(k-1)/2 (bilinear: k(d1 + d2 - k)) of M, and those of w, b and the free squares.
  [[nodiscard]] Index unknowns() const;

  /// Throws std::invalid_argument that names the field and its allowed values.
  void validate() const;
};

}  // namespace dyad
