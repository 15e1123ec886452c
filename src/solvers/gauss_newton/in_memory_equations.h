#pragma once

#include <functional>
#include <vector>

#include "base/thread_pool.h"
#include "data/observed_rows.h"
#include "model/sides.h"
#include "solvers/gauss_newton/newton_options.h"
#include "solvers/gauss_newton/normal_equations.h"

namespace dyad {

/// Normal equations of rows that are stored by this process. Each data pass applies X and X' to one block of rows after
/// the other. Neither J nor intermediate results of the rows are stored. Does not own the rows and the thread pool; the
/// caller keeps them alive. Not thread-safe; the passes themselves run on all threads of the pool.
class InMemoryNormalEquations : public NormalEquations {
 public:
  InMemoryNormalEquations(const ObservedRows& rows, const NewtonOptions& options, ThreadPool& pool);

  [[nodiscard]] Index dim() const override { return rows_.dim(); }
  [[nodiscard]] double epsilon() const override { return rows_.X().epsilon(); }
  [[nodiscard]] TargetSums targets() const override;
  [[nodiscard]] Matrix<double> gram(bool squares) const override;
  [[nodiscard]] Vector<double> gram_diagonal(bool squares) const override;
  [[nodiscard]] RowSums gradient(const SignedFactors<double>& parameters) const override;
  [[nodiscard]] RowSums curvature_product(const SignedFactors<double>& parameters,
                                          const ParameterVector& t) const override;
  [[nodiscard]] bool prefers_dual() const override;
  [[nodiscard]] RowSums solve_dual(const SignedFactors<double>& parameters, const ParameterVector& D,
                                   const ParameterVector& offset) const override;

 private:
  /// Projections X B of a block of rows by the left and by the right side. Symmetric models: `right` is empty.
  struct Projections {
    RowMajorMatrix<double> left;
    RowMajorMatrix<double> right;

    /// Projections that multiply those of the left side in x'Mz.
    [[nodiscard]] const RowMajorMatrix<double>& other() const { return right.size() > 0 ? right : left; }
  };
  /// Adds the sums of a block of rows.
  using AddBlock = std::function<void(IndexRange block, RowSums& sums)>;

  /// Number of columns of [w, A].
  [[nodiscard]] Index width() const { return options_.shape.rank + 1; }
  /// Whether predictions need x^2: for a zero or free diagonal.
  [[nodiscard]] bool has_squares() const { return options_.shape.diagonal != Diagonal::tied; }
  [[nodiscard]] IndexRange all_rows() const { return {0, rows_.count()}; }
  [[nodiscard]] RowSums sum_over_blocks(const AddBlock& add_block) const;
  [[nodiscard]] Projections project_sides(IndexRange block, const RowMajorMatrix<double>& B) const;
  /// Predictions of a block. The first columns of `projections` are X [w, A]; `squares` are the coefficients of x^2.
  [[nodiscard]] Vector<double> predictions(IndexRange block, const SignedFactors<double>& parameters,
                                           const Vector<double>& squares, const Projections& projections) const;
  /// sums += J'e of a block.
  void add_transposed_jacobian(IndexRange block, const SignedFactors<double>& parameters, const Vector<double>& e,
                               const Projections& projections, RowSums& sums) const;
  /// Products of [D^-1/2 G', D^-1/2 offset] over all parameters but the intercept: the upper left n x n block is G D^-1
  /// G', the last column G D^-1 offset. `roots` is the diagonal of H^1/2. Empty after an interruption.
  [[nodiscard]] RowMajorMatrix<double> compute_dual_gram(const SignedFactors<double>& parameters,
                                                         const ParameterVector& D, const ParameterVector& offset,
                                                         const Vector<double>& roots,
                                                         const Projections& projections) const;
  /// Adds the weighted loss of row i to `loss`, sets `curvature` to its second derivative with respect to the
  /// prediction, and returns its negative first derivative.
  double expand_loss(Index i, double prediction, double& loss, double& curvature) const;

  ObservedRows rows_;
  NewtonOptions options_;
  ThreadPool& pool_;
  Sides sides_;
  mutable std::vector<RowSums> worker_sums_;  ///< reused allocations of the workers 1, 2, ...
};

}  // namespace dyad
