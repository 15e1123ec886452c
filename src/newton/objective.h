#pragma once

#include <memory>

#include "newton/row_sums.h"

namespace dyad {

/// The parameters behind a step.
template <typename Scalar>
SignedFactors<Scalar> moved(SignedFactors<Scalar> parameters, const Direction<Scalar>& step);

/// The sum over rows of half squared residuals or log-losses, its slope J'r and its curvature J'HJ (Gauss-Newton),
/// where J are the derivatives of the predictions. Each product is one look at all rows.
template <typename Scalar>
class Objective {
 public:
  Objective(std::shared_ptr<const RowLooks<Scalar>> looks, const NewtonOptions& options);
  /// Of rows in memory.
  Objective(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers)
      : Objective(std::make_shared<LooksInMemory<Scalar>>(rows, options, workers), options) {}

  /// Moves to these parameters; the mean loss there, by weight.
  double move_to(const SignedFactors<Scalar>& parameters);

  /// The way down from there, J'r.
  [[nodiscard]] const Direction<Scalar>& descent() const { return descent_; }

  /// J'HJ t.
  [[nodiscard]] Direction<Scalar> curvature_times(const Direction<Scalar>& t) const;

  /// Whether `solve_dual` costs less than conjugate gradients with `curvature_times`.
  [[nodiscard]] bool prefers_dual() const { return looks_->prefers_dual(); }
  /// t of (J'HJ + D) t = J'r - offset, for a diagonal D > 0.
  [[nodiscard]] Direction<Scalar> solve_dual(const Direction<Scalar>& D, const Direction<Scalar>& offset) const;

  /// sum_i h_i p_i p_i' of the projections p = A'x, by which the factors of the other side (symmetric: of the only one)
  /// bend the loss: left, right.
  [[nodiscard]] const Small<double>& projection_products(bool right) const { return products_of_sides_[right ? 1 : 0]; }
  [[nodiscard]] double total_curvature() const { return total_curvature_; }
  [[nodiscard]] double total_weight() const { return total_weight_; }
  /// Of the best constant.
  [[nodiscard]] double constant_loss() const { return constant_loss_; }

  [[nodiscard]] Index products() const { return products_; }

 private:
  [[nodiscard]] Direction<Scalar> direction_of(const RowSums<Scalar>& sums) const;

  std::shared_ptr<const RowLooks<Scalar>> looks_;
  NewtonOptions options_;
  double total_weight_ = 0;
  double constant_loss_ = 0;
  SignedFactors<Scalar> parameters_;
  double total_curvature_ = 0;
  std::array<Small<double>, 2> products_of_sides_;
  Direction<Scalar> descent_;
  mutable Index products_ = 0;
};

}  // namespace dyad
