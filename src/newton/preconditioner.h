#pragma once

#include <array>

#include "newton/objective.h"

namespace dyad {

/// What second moments of features know about the curvature, in closed form: for Gaussian features with second moments
/// C, those of two weights bend the loss together by C, those of two factors by C (x) K, where K are the second moments
/// of the slopes 2 S A'x, those of two squares by 2 C*C. With many features, or sparse ones, C is its diagonal.
template <typename Scalar>
class Preconditioner {
 public:
  Preconditioner(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers);

  /// At the objective's present place.
  void move_to(const Objective<Scalar>& objective, const SignedFactors<Scalar>& parameters);

  /// damping B v, where B is that curvature, kept away from 0.
  [[nodiscard]] Direction<Scalar> damped(const Direction<Scalar>& v, double damping) const;
  /// ((1 + damping) B + ridge)^-1 v.
  [[nodiscard]] Direction<Scalar> solved(const Direction<Scalar>& v, double damping) const;

 private:
  /// The features of one side.
  struct Side {
    Index first = 0;
    Index count = 0;
    Small<Scalar> axes;       ///< of C; empty: the features themselves
    Vector<Scalar> moments;   ///< along them
    Small<Scalar> turns;      ///< axes of K
    Vector<Scalar> bends;     ///< along them
  };

  template <typename Change>
  [[nodiscard]] Direction<Scalar> changed(const Direction<Scalar>& v, Change&& change) const;

  const NewtonOptions& options_;
  std::array<Side, 2> sides_;
  Index side_count_ = 1;
  Small<Scalar> square_axes_;
  Vector<Scalar> square_moments_;
  double total_curvature_ = 1;
};

}  // namespace dyad
