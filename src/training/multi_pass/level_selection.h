#pragma once

#include <optional>

#include "training/multi_pass/held_out_folds.h"

namespace dyad {

/// Result of select_level().
struct SelectedLevel {
  std::optional<Posterior<double>> fit;  ///< of the first fold at the selected level, if `needs_fit`
  /// Mean squared residual of the held-out rows at the selected level; null if one pass is selected.
  std::optional<double> mean_squared_residual;
};

/// Advances the solvers of all folds level by level, until EarlyStopping::should_continue() is false, and selects the
/// level with the smallest loss on held-out rows. Writes the level and the held-out losses to `result`.
template <typename Scalar>
SelectedLevel select_level(const MultiPassContext<Scalar>& context, HeldOutFolds<Scalar>& folds,
                           const MultiPassSolverOptions& options, bool needs_fit, MultiPassResult<Scalar>& result);

}  // namespace dyad
