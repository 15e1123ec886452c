#pragma once

#include <functional>
#include <vector>

#include <dyad/rows.h>

#include "base/workers.h"
#include "model/sides.h"
#include "model/signed_factors.h"

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

/// The model's predictions of kept rows and their derivatives J with respect to all parameters, as products. Nothing of
/// the size of J is ever formed: each product reads the rows once.
template <typename Scalar>
class Jacobian {
 public:
  /// Which parameters are learned.
  struct Shape {
    bool linear = true;
    bool intercept = true;
  };

  Jacobian(const Rows<Scalar>& rows, Shape shape, Workers& workers);

  /// Moves to these parameters, and gives the predictions there.
  const Vector<Scalar>& move_to(const SignedFactors<Scalar>& parameters);

  [[nodiscard]] Vector<Scalar> times(const Direction<Scalar>& t) const;
  [[nodiscard]] Direction<Scalar> transposed_times(const Vector<Scalar>& e) const;

  /// Mean squared slope per column of Direction::features, for features of variance 1.
  [[nodiscard]] Vector<Scalar> column_scales() const;

  [[nodiscard]] Index products() const { return products_; }

 private:
  [[nodiscard]] Index width() const { return parameters_.rank() + 1; }
  [[nodiscard]] bool untied() const { return parameters_.diagonal != Diagonal::tied; }
  void split(const std::function<void(int worker, Share share)>& task) const;
  /// X_left [w, A] and X_right [v, A] of one side each, and X^2 q.
  void project_all(const Tall<Scalar>& features, const Vector<Scalar>& squares, Tall<Scalar>& left, Tall<Scalar>& right,
                   Vector<Scalar>& square) const;

  Rows<Scalar> rows_;
  Shape shape_;
  Workers& workers_;
  double entries_ = 0;  ///< of all rows
  SignedFactors<Scalar> parameters_;
  Tall<Scalar> left_;   ///< rows x (1 + rank): X_left [w, A]
  Tall<Scalar> right_;  ///< the same of the right side, where there is one
  Vector<Scalar> predictions_;
  mutable Index products_ = 0;
};

}  // namespace dyad
