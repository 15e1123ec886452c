#pragma once

#include <array>
#include <functional>
#include <vector>

#include <dyad/rows.h>

#include "base/workers.h"
#include "model/sides.h"
#include "model/signed_factors.h"
#include "newton/newton_options.h"

namespace dyad {

/// Everything that a step can move, one number per parameter: a vector of the normal equations.
template <typename Scalar>
struct Direction {
  Scalar intercept = 0;
  Tall<Scalar> features;   ///< per feature: the weight, then the factors
  Vector<Scalar> squares;  ///< free diagonal only

  [[nodiscard]] double dot(const Direction& other) const;
  /// this = other + scale * this, or this += scale * other.
  void scale_and_add(Scalar scale, const Direction& other);
  void add(Scalar scale, const Direction& other);
};

/// The parameters behind a step.
template <typename Scalar>
SignedFactors<Scalar> moved(SignedFactors<Scalar> parameters, const Direction<Scalar>& step);

/// The sum over rows of half squared residuals or log-losses, its slope J'r and its curvature J'HJ (Gauss-Newton),
/// where J are the derivatives of the predictions. Nothing of the size of J is ever formed, and nothing is kept per row
/// but its curvature: each product reads the rows once, a block at a time.
template <typename Scalar>
class Objective {
 public:
  Objective(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers);

  /// Moves to these parameters; the mean loss there, by weight.
  double move_to(const SignedFactors<Scalar>& parameters);

  /// The way down from there, J'r.
  [[nodiscard]] const Direction<Scalar>& descent() const { return descent_; }

  /// J'HJ t.
  [[nodiscard]] Direction<Scalar> curvature_times(const Direction<Scalar>& t) const;

  /// sum_i h_i p_i p_i' of the projections p = A'x, by which the factors of the other side (symmetric: of the only one)
  /// bend the loss: left, right.
  [[nodiscard]] const Small<double>& projection_products(bool right) const { return products_of_sides_[right ? 1 : 0]; }
  [[nodiscard]] double total_curvature() const { return total_curvature_; }
  [[nodiscard]] double total_weight() const { return total_weight_; }
  /// Of the best constant.
  [[nodiscard]] double constant_loss() const { return constant_loss_; }

  [[nodiscard]] Index products() const { return products_; }

 private:
  struct Sums;

  [[nodiscard]] Index width() const { return options_.rank + 1; }
  [[nodiscard]] bool untied() const { return options_.diagonal != Diagonal::tied; }
  [[nodiscard]] bool curvature_varies() const;
  [[nodiscard]] Scalar curvature(Index i) const {
    return curvature_.empty() ? rows_.weight(i) : curvature_[static_cast<std::size_t>(i)];
  }
  Sums sum_over_blocks(const std::function<void(const Rows<Scalar>& block, Index first, Sums& sums)>& visit) const;
  void add_back(const Rows<Scalar>& block, const Vector<Scalar>& e, const Tall<Scalar>& left, const Tall<Scalar>& right,
                Sums& sums) const;
  [[nodiscard]] Direction<Scalar> direction_of(const Sums& sums) const;
  Scalar loss_of_row(Index i, Scalar prediction, double& loss, Scalar& curvature) const;

  Rows<Scalar> rows_;
  NewtonOptions options_;
  Workers& workers_;
  Sides sides_;
  double entries_ = 0;  ///< of all rows
  double total_weight_ = 0;
  double constant_loss_ = 0;
  SignedFactors<Scalar> parameters_;
  Tall<Scalar> features_;          ///< [w, A]
  Vector<Scalar> squares_;         ///< of x_j^2, where they are not tied to A
  std::vector<Scalar> curvature_;  ///< of each row's loss, where it is not its weight
  double total_curvature_ = 0;
  std::array<Small<double>, 2> products_of_sides_;
  Direction<Scalar> descent_;
  mutable Index products_ = 0;
};

}  // namespace dyad
