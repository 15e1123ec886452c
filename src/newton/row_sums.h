#pragma once

#include <array>
#include <functional>
#include <vector>

#include <dyad/rows.h>

#include "base/archive.h"
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

/// The targets, by weight.
struct TargetSums {
  double weight = 0;
  double sum = 0;
  double squares = 0;

  void add(const TargetSums& other);
  void archive(Archive& archive);
};

/// What rows say about parameters: J' of something per row, and what else a look at them finds. It all adds over rows.
template <typename Scalar>
struct RowSums {
  Tall<Scalar> features;
  Vector<Scalar> squares;
  double intercept = 0;
  double loss = 0;
  double curvature = 0;
  std::array<Small<double>, 2> products_of_sides;

  void set_zero(Index dim, Index width, bool untied);
  void add(const RowSums& other);
  void archive(Archive& archive, Index dim, Index width, bool untied);
};

/// Whoever can look at all rows, wherever these lie: every look is a sum over them, of the size of the model.
template <typename Scalar>
class RowLooks {
 public:
  virtual ~RowLooks() = default;

  [[nodiscard]] virtual Index dim() const = 0;
  [[nodiscard]] virtual TargetSums targets() const = 0;
  /// Sums of w z z' for z = (1, x), or (1, x, x^2) with `squares`; and their diagonal alone.
  [[nodiscard]] virtual Small<Scalar> products(bool squares) const = 0;
  [[nodiscard]] virtual Vector<Scalar> product_diagonal(bool squares) const = 0;
  /// The losses at these parameters, J'r and the curvatures.
  [[nodiscard]] virtual RowSums<Scalar> slopes(const SignedFactors<Scalar>& at) const = 0;
  /// J'HJ t there.
  [[nodiscard]] virtual RowSums<Scalar> bends(const SignedFactors<Scalar>& at, const Direction<Scalar>& t) const = 0;

  /// Whether `dual_sums` is available and costs less than conjugate gradients.
  [[nodiscard]] virtual bool prefers_dual() const { return false; }
  /// J'e of the solution t = D^-1 (J'e - offset) of (J'HJ + D) t = J'r - offset, for a diagonal D > 0. With G = H^1/2
  /// J, e = H^1/2 y solves one equation per row (Woodbury): (I + G D^-1 G') y = H^-1/2 r + G D^-1 offset. The cost is
  /// linear in the number of features. An interruption leaves the sums incomplete.
  [[nodiscard]] virtual RowSums<Scalar> dual_sums(const SignedFactors<Scalar>& at, const Direction<Scalar>& D,
                                                  const Direction<Scalar>& offset) const;
};

/// At rows in memory: nothing of the size of J is ever formed, and nothing is kept per row. For one caller at a time.
template <typename Scalar>
class LooksInMemory : public RowLooks<Scalar> {
 public:
  /// Rows and workers are somebody else's.
  LooksInMemory(const Rows<Scalar>& rows, const NewtonOptions& options, Workers& workers);

  [[nodiscard]] Index dim() const override { return rows_.dim(); }
  [[nodiscard]] TargetSums targets() const override;
  [[nodiscard]] Small<Scalar> products(bool squares) const override;
  [[nodiscard]] Vector<Scalar> product_diagonal(bool squares) const override;
  [[nodiscard]] RowSums<Scalar> slopes(const SignedFactors<Scalar>& at) const override;
  [[nodiscard]] RowSums<Scalar> bends(const SignedFactors<Scalar>& at, const Direction<Scalar>& t) const override;
  [[nodiscard]] bool prefers_dual() const override;
  [[nodiscard]] RowSums<Scalar> dual_sums(const SignedFactors<Scalar>& at, const Direction<Scalar>& D,
                                          const Direction<Scalar>& offset) const override;

 private:
  using Visit = std::function<void(const Rows<Scalar>& block, RowSums<Scalar>& sums)>;

  [[nodiscard]] Index width() const { return options_.shape.rank + 1; }
  [[nodiscard]] bool untied() const { return options_.shape.diagonal != Diagonal::tied; }
  [[nodiscard]] bool curvature_varies() const;
  [[nodiscard]] RowSums<Scalar> sum_over_blocks(const Visit& visit) const;
  /// [X B] of both sides, for B of any width.
  void project_sides(const Rows<Scalar>& block, const Tall<Scalar>& B, Tall<Scalar>& left, Tall<Scalar>& right) const;
  /// Predictions of rows whose projections begin with those of [w, A].
  [[nodiscard]] Vector<Scalar> predictions(const Rows<Scalar>& block, const SignedFactors<Scalar>& at,
                                           const Vector<Scalar>& squares, const Tall<Scalar>& left,
                                           const Tall<Scalar>& right) const;
  void add_back(const Rows<Scalar>& block, const SignedFactors<Scalar>& at, const Vector<Scalar>& e,
                const Tall<Scalar>& left, const Tall<Scalar>& right, RowSums<Scalar>& sums) const;
  [[nodiscard]] Tall<double> dual_products(const SignedFactors<Scalar>& at, const Direction<Scalar>& D,
                                           const Direction<Scalar>& offset, const Vector<double>& roots,
                                           const Tall<Scalar>& left, const Tall<Scalar>& right) const;
  Scalar loss_of_row(const Rows<Scalar>& block, Index i, Scalar prediction, double& loss, Scalar& curvature) const;

  Rows<Scalar> rows_;
  NewtonOptions options_;
  Workers& workers_;
  Sides sides_;
  double entries_ = 0;                                ///< of all rows
  mutable std::vector<RowSums<Scalar>> others_sums_;  ///< room that stays from look to look
};

}  // namespace dyad
