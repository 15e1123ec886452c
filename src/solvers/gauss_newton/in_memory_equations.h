#pragma once

#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/sides.h"
#include "solvers/gauss_newton/newton_options.h"
#include "solvers/gauss_newton/normal_equations.h"

namespace dyad {

/// Normal equations of rows that one process can multiply with. Each data pass applies X and X' to one block of rows
/// after the other; neither J nor any number per row is stored. Refers to the rows and the thread pool, which the
/// caller keeps alive. Used by one thread at a time.
class InMemoryNormalEquations : public NormalEquations {
 public:
  InMemoryNormalEquations(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool);

  [[nodiscard]] Index dim() const override { return rows_.dim(); }
  [[nodiscard]] double epsilon() const override { return rows_.X().epsilon(); }
  [[nodiscard]] TargetSums targets() const override;
  [[nodiscard]] Small<double> products(bool squares) const override;
  [[nodiscard]] Vector<double> product_diagonal(bool squares) const override;
  [[nodiscard]] RowSums gradient(const SignedFactors<double>& at) const override;
  [[nodiscard]] RowSums curvature_product(const SignedFactors<double>& at, const ParameterVector& t) const override;
  [[nodiscard]] bool prefers_dual() const override;
  [[nodiscard]] RowSums dual(const SignedFactors<double>& at, const ParameterVector& D,
                             const ParameterVector& offset) const override;

 private:
  /// X B of the left and of the right side for a block of rows. Symmetric models: `right` is empty.
  struct Projections {
    Tall<double> left;
    Tall<double> right;

    [[nodiscard]] const Tall<double>& other() const { return right.size() > 0 ? right : left; }
  };
  using Visit = std::function<void(Share block, RowSums& sums)>;

  [[nodiscard]] Index width() const { return options_.shape.rank + 1; }
  [[nodiscard]] bool has_squares() const { return options_.shape.diagonal != Diagonal::tied; }
  [[nodiscard]] Share all_rows() const { return {0, rows_.count()}; }
  [[nodiscard]] RowSums sum_over_blocks(const Visit& visit) const;
  [[nodiscard]] Projections project_sides(Share block, const Tall<double>& B) const;
  /// Predictions of rows whose projections begin with those of [w, A].
  [[nodiscard]] Vector<double> predictions(Share block, const SignedFactors<double>& at, const Vector<double>& squares,
                                           const Projections& projections) const;
  /// sums += J'e of the block.
  void add_transposed_jacobian(Share block, const SignedFactors<double>& at, const Vector<double>& e,
                               const Projections& projections, RowSums& sums) const;
  [[nodiscard]] Tall<double> dual_products(const SignedFactors<double>& at, const ParameterVector& D,
                                           const ParameterVector& offset, const Vector<double>& roots,
                                           const Projections& projections) const;
  /// Adds the loss of row i and returns its negative derivative with respect to the prediction.
  double expand_loss(Index i, double prediction, double& loss, double& curvature) const;

  ObservedRows rows_;
  NewtonOptions options_;
  ThreadPool& pool_;
  Sides sides_;
  mutable std::vector<RowSums> sums_of_others_;  ///< reused allocations of all threads but the first
};

}  // namespace dyad
