#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "training/multi_pass/multi_pass_context.h"

namespace dyad {

/// Losses of held-out rows. All losses are weighted means over the rows.
struct HeldOutLoss {
  double loss = 0;                   ///< mean of MultiPassOptions::loss
  double mean_squared_residual = 0;  ///< of the linear predictor
  double constant_loss = 0;          ///< classification: log-loss of the best constant
  double weight = 0;                 ///< sum of the weights of the held-out rows
  Index rows = 0;                    ///< number of held-out rows
};

/// Spectral initialization from the moments of the rows (MomentStart), without variances. Does not depend on the order
/// of the rows.
template <typename Scalar>
Posterior<double> order_invariant_start(const Rows<Scalar>& rows, const KalmanOptions& kalman, ThreadPool& pool);

/// Posterior of a filter, from which solvers with one prior for all features start. If the features belong to two prior
/// groups of indicators, the factors of one group are multiplied by a number and those of the other are divided by it,
/// so that both have the same mean square. The predictions do not change, because each row has at most one feature of a
/// group.
template <typename Scalar>
Posterior<double> balanced_posterior(const KalmanFilter<Scalar>& filter);

/// Cross-validation folds of the cached rows. A fold consists of training rows, a posterior to start from, held-out
/// rows and, after make_solvers(), a solver. For fewer than 5,000 rows and 100,000 parameters there are five folds, and
/// every row is held out once, unless the solver is sampling. Otherwise there is one fold, which holds out a tenth of
/// the rows (a fifth for fewer than 5,000 rows). Refers to the context, which the caller keeps alive.
template <typename Scalar>
class HeldOutFolds {
 public:
  /// `rows`: view of the cached rows, divided by `scales`. With exact weights there are no folds if one of them would
  /// have no rows. After an interruption folds may have no start, and make_solvers() must not be called.
  HeldOutFolds(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows, const std::vector<double>& scales);
  /// One fold that trains on all rows. The validation rows are its held-out rows; the caller keeps them alive.
  HeldOutFolds(const MultiPassContext<Scalar>& context, const Rows<Scalar>& rows, Posterior<double> start,
               RowCache<Scalar>& validation);

  [[nodiscard]] bool empty() const { return folds_.empty(); }
  [[nodiscard]] Index count() const { return static_cast<Index>(folds_.size()); }

  /// The fold that holds out each row; may exceed the number of folds.
  [[nodiscard]] const std::vector<std::uint8_t>& fold_of() const { return fold_of_; }

  /// Whether the held-out rows are validation rows.
  [[nodiscard]] bool has_validation_rows() const { return folds_.front().validation != nullptr; }
  /// Held-out rows of the first fold.
  [[nodiscard]] Rows<Scalar> held_out_rows() { return held_out_rows(folds_.front()); }

  /// Creates one solver per fold from its start, which is moved from.
  void make_solvers(const MultiPassSolverOptions& options);
  /// Advances all solvers by one level. Returns false if one of them has no further level.
  bool advance();

  [[nodiscard]] const MultiPassSolver& first_solver() const { return *folds_.front().solver; }
  [[nodiscard]] double objective() const;  ///< per row; mean over the folds
  /// Losses at the parameters of the solvers, or of the starts before make_solvers().
  [[nodiscard]] HeldOutLoss evaluate();
  [[nodiscard]] Index row_reads() const;  ///< number of rows read, summed over folds, starts and passes

 private:
  struct Fold {
    Rows<Scalar> rows;  ///< training rows
    Posterior<double> start;
    RowCache<Scalar> held_out_copy;
    RowCache<Scalar>* validation = nullptr;   ///< held-out rows; null: held_out_copy
    std::unique_ptr<MultiPassSolver> solver;  ///< null before make_solvers()
  };

  [[nodiscard]] Rows<Scalar> held_out_rows(Fold& fold) {
    return context_.view(fold.validation != nullptr ? *fold.validation : fold.held_out_copy);
  }
  bool assign_folds_by_hash(const Rows<Scalar>& rows);
  Posterior<double> learn_one_pass(const Rows<Scalar>& rows, const std::vector<double>& scales);
  template <typename Learn>
  void for_each_block(const Rows<Scalar>& rows, Learn&& learn) const;

  const MultiPassContext<Scalar>& context_;
  MultiPassSolverOptions solver_options_;
  std::vector<std::uint8_t> fold_of_;  ///< index of the fold that holds out each row; may exceed the number of folds
  std::vector<Fold> folds_;
  Index start_row_reads_ = 0;
};

}  // namespace dyad
