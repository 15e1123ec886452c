#pragma once

#include <array>

#include <Eigen/Cholesky>

#include "newton/objective.h"

namespace dyad {

/// What moments of the features know about the curvature J'HJ: how weights, squares and intercept bend the loss
/// together are second moments of (1, x, x^2); how two factors do is, for Gaussian features, C (x) K in closed form,
/// where C are the second moments of the features and K those of the slopes 2 S A'x. With many features, or few rows,
/// only the diagonals count.
template <typename Scalar>
class Preconditioner {
 public:
  Preconditioner(const RowLooks<Scalar>& looks, const NewtonOptions& options);

  /// At the objective's present place.
  void move_to(const Objective<Scalar>& objective, const SignedFactors<Scalar>& parameters);
  /// From here on, the curvature is solved together with so much of its own diagonal.
  void set_damping(double damping);

  /// damping D v, where D is the diagonal of that curvature, kept away from 0.
  [[nodiscard]] Direction<Scalar> damped(const Direction<Scalar>& v) const;
  /// (C + damping D + ridge)^-1 v, roughly, where C is that curvature.
  [[nodiscard]] Direction<Scalar> solved(const Direction<Scalar>& v) const;

 private:
  /// The features of one side.
  struct Side {
    Index first = 0;
    Index count = 0;
    Small<Scalar> axes;      ///< of C; empty: the features themselves
    Vector<Scalar> moments;  ///< along them
    Small<Scalar> turns;     ///< axes of K
    Vector<Scalar> bends;    ///< along them
    Vector<Scalar> slopes;   ///< the diagonal of K
  };

  void find_moments(const RowLooks<Scalar>& looks);
  [[nodiscard]] Index linear_count() const { return 1 + dim_ + (has_squares() ? dim_ : 0); }
  [[nodiscard]] bool has_squares() const { return options_.shape.diagonal == Diagonal::free; }
  [[nodiscard]] Vector<Scalar> linear_part(const Direction<Scalar>& v) const;
  void set_linear_part(const Vector<Scalar>& part, Direction<Scalar>& v) const;

  const NewtonOptions& options_;
  Index dim_;
  std::array<Side, 2> sides_;
  Index side_count_ = 1;
  Small<Scalar> linear_;            ///< second moments of (1, x, x^2); empty: their diagonal is enough
  Vector<Scalar> linear_diagonal_;  ///< of it
  Eigen::LLT<Small<Scalar>> linear_solver_;
  double total_curvature_ = 1;
  double damping_ = 0;
};

}  // namespace dyad
