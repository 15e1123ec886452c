#pragma once

#include <array>
#include <limits>

#include "base/archive.h"
#include "model/signed_factors.h"

namespace dyad {

/// One number per parameter, in the layout of SignedFactors: a gradient, a step, a diagonal.
struct ParameterVector {
  double intercept = 0;
  RowMajorMatrix<double> features;  ///< row j: the weight of feature j, then its factors
  Vector<double> squares;           ///< empty unless the diagonal is free

  [[nodiscard]] double dot(const ParameterVector& other) const;
  /// this = other + scale * this.
  void scale_and_add(double scale, const ParameterVector& other);
  /// this += scale * other.
  void add(double scale, const ParameterVector& other);
};

/// Sums over rows of weight, weight * target and weight * target^2.
struct TargetSums {
  double weight = 0;
  double sum = 0;
  double squares = 0;

  void add(const TargetSums& other);
  void archive(Archive& archive);
};

/// Sums over rows of one data pass, all of which are additive. With a number e_i per row, `features` is
/// sum_i e_i df_i/d(w, A) before the correction for a zero or free diagonal, `squares` is sum_i e_i x_i^2 and
/// `intercept` is sum_i e_i.
struct RowSums {
  RowMajorMatrix<double> features;  ///< dim x (1 + rank)
  Vector<double> squares;           ///< empty for a tied diagonal
  double intercept = 0;
  double loss = 0;
  double curvature = 0;  ///< sum_i h_i of the second derivatives of the losses
  /// sum_i h_i p_i p_i' of the projections p = A'x of the left and of the right side. Symmetric models: only the left.
  std::array<Matrix<double>, 2> projection_grams;

  void set_zero(Index dim, Index width, bool has_squares);
  void add(const RowSums& other);
  void archive(Archive& archive, Index dim, Index width, bool has_squares);
};

/// Normal equations J'HJ t = J'r of a Gauss-Newton step. J contains the derivatives of the predictions with respect to
/// the parameters, r the negative derivatives and H the second derivatives of the losses with respect to the
/// predictions. Every function is one pass over all rows and returns sums of the size of the model, so that rows can be
/// stored in memory, on disk or by workers.
class NormalEquations {
 public:
  virtual ~NormalEquations() = default;

  [[nodiscard]] virtual Index dim() const = 0;
  /// Relative rounding error of rows and targets.
  [[nodiscard]] virtual double epsilon() const { return std::numeric_limits<double>::epsilon(); }
  [[nodiscard]] virtual TargetSums targets() const = 0;
  /// sum_i w_i z_i z_i' for z = (1, x), or z = (1, x, x^2) with `squares`.
  [[nodiscard]] virtual Matrix<double> gram(bool squares) const = 0;
  /// The diagonal of `gram`.
  [[nodiscard]] virtual Vector<double> gram_diagonal(bool squares) const = 0;
  /// The losses, J'r and the curvatures at the parameters.
  [[nodiscard]] virtual RowSums gradient(const SignedFactors<double>& parameters) const = 0;
  /// J'HJ t at the parameters.
  [[nodiscard]] virtual RowSums curvature_product(const SignedFactors<double>& parameters,
                                                  const ParameterVector& t) const = 0;

  /// Whether `solve_dual` is available and costs less than conjugate gradients.
  [[nodiscard]] virtual bool prefers_dual() const { return false; }
  /// J'e of the solution t = D^-1 (J'e - offset) of (J'HJ + D) t = J'r - offset, for a diagonal D > 0. With
  /// G = H^1/2 J, e = H^1/2 y solves one equation per row (Woodbury identity):
  /// (I + G D^-1 G') y = H^-1/2 r + G D^-1 offset. The cost is linear in the number of features. The sums are
  /// incomplete if the solver is interrupted. Throws std::logic_error if it is not available.
  [[nodiscard]] virtual RowSums solve_dual(const SignedFactors<double>& parameters, const ParameterVector& D,
                                           const ParameterVector& offset) const;
};

}  // namespace dyad
