#pragma once

#include <vector>

#include "training/multi_pass/refine.h"

namespace dyad {

/// Data that all parts of multi-pass training refer to. The caller keeps it alive.
template <typename Scalar>
struct RefineContext {
  const StreamLearner<Scalar>& learner;  ///< after one pass
  RowCache<Scalar>& rows;
  const RefineOptions& options;
  ThreadPool& pool;

  [[nodiscard]] const KalmanFilter<Scalar>& one_pass() const { return learner.filter(); }
  [[nodiscard]] const KalmanOptions& kalman() const { return one_pass().options(); }
  [[nodiscard]] Rows<Scalar> view(RowCache<Scalar>& of) const {
    return of.view(kalman().shape.dim, kalman().shape.left_dim);
  }
  [[nodiscard]] bool is_interrupted() const { return options.interrupted && options.interrupted(); }
  void report(const RefineStep& step) const {
    if (options.progress) options.progress(step);
  }
  /// Reports a step on the way to a level.
  void report(const MultiPassSolver& pass_solver, bool is_refit) const {
    if (options.progress)
      report({pass_solver.level(), pass_solver.objective(), std::numeric_limits<double>::quiet_NaN(), is_refit});
  }
};

}  // namespace dyad
