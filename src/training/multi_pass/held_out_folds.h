#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "training/multi_pass/refine_context.h"

namespace dyad {

/// Mean losses of held-out rows.
struct HeldOutLoss {
  double loss = 0;           ///< as RefineOptions::loss
  double squares = 0;        ///< squared residuals
  double constant_loss = 0;  ///< classes: log-loss of the best constant
  double weight = 0;         ///< sum of the weights of the held-out rows
  Index rows = 0;
};

/// Start that does not depend on the order of the rows.
template <typename Scalar>
Posterior<double> moment_posterior(const Rows<Scalar>& rows, const KalmanOptions& kalman, ThreadPool& pool);

/// Folds of the cached rows: each has rows to train on, a posterior to start from, rows that are held out and, after
/// `make_solvers`, a solver. Below 5,000 rows there are five folds, and every row is held out once; else one fold of a
/// tenth of the rows.
template <typename Scalar>
class HeldOutFolds {
 public:
  /// `rows`: view of the cached rows with features of scale 1. `scales`: of the features before. No folds if one would
  /// be empty. After an interruption folds may have no start.
  HeldOutFolds(const RefineContext<Scalar>& context, const Rows<Scalar>& rows, const std::vector<double>& scales);
  /// One fold of all rows, which holds out the validation rows. Does not own these.
  HeldOutFolds(const RefineContext<Scalar>& context, const Rows<Scalar>& rows, Posterior<double> start,
               RowCache<Scalar>& validation);

  [[nodiscard]] bool empty() const { return folds_.empty(); }
  [[nodiscard]] Index count() const { return static_cast<Index>(folds_.size()); }

  void make_solvers(const MultiPassSolverOptions& options);
  /// Advances all solvers by one level. False if one of them has no further level.
  bool advance();

  [[nodiscard]] const MultiPassSolver& first() const { return *folds_.front().pass_solver; }
  [[nodiscard]] double objective() const;  ///< mean over the folds
  /// At the parameters of the solvers, or of the starts before `make_solvers`.
  [[nodiscard]] HeldOutLoss evaluate();
  [[nodiscard]] Index row_reads() const;

 private:
  struct Fold {
    Rows<Scalar> rows;
    Posterior<double> start;
    RowCache<Scalar> own_held_out;
    RowCache<Scalar>* held_out = nullptr;  ///< nullptr: own_held_out
    std::unique_ptr<MultiPassSolver> pass_solver;
  };

  bool assign_folds_by_hash(const Rows<Scalar>& rows);
  Posterior<double> posterior_of_pass(const Rows<Scalar>& rows, const std::vector<double>& scales);
  template <typename Learn>
  void for_each_block(const Rows<Scalar>& rows, Learn&& learn) const;

  const RefineContext<Scalar>& context_;
  MultiPassSolverOptions solver_options_;
  std::vector<std::uint8_t> fold_of_;  ///< of each row
  std::vector<Fold> folds_;
  Index row_reads_of_starts_ = 0;
};

}  // namespace dyad
