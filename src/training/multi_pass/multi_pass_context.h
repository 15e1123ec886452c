#pragma once

#include <vector>

#include "training/multi_pass/train_multi_pass.h"

namespace dyad {

/// Arguments of train_multi_pass() that its components share. Does not own them; the caller keeps them alive.
template <typename Scalar>
struct MultiPassContext {
  const StreamLearner<Scalar>& learner;  ///< after the first pass
  RowCache<Scalar>& rows;                ///< rows of the first pass
  const MultiPassOptions& options;
  ThreadPool& pool;

  /// Best filter of the first pass.
  [[nodiscard]] const KalmanFilter<Scalar>& one_pass() const { return learner.filter(); }
  [[nodiscard]] const KalmanOptions& kalman() const { return one_pass().options(); }
  [[nodiscard]] Rows<Scalar> view(RowCache<Scalar>& cache) const {
    return cache.view(kalman().shape.dim, kalman().shape.left_dim);
  }
  [[nodiscard]] bool is_interrupted() const { return options.interrupted && options.interrupted(); }
  void report(const MultiPassStep& step) const {
    if (options.progress) options.progress(step);
  }
  /// Reports a step within a level, which has no held-out loss.
  void report(const MultiPassSolver& solver, bool is_refit) const {
    if (options.progress)
      report({solver.level(), solver.objective(), std::numeric_limits<double>::quiet_NaN(), is_refit});
  }
};

}  // namespace dyad
