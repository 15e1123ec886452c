#pragma once

#include <optional>

#include "training/multi_pass/held_out_folds.h"

namespace dyad {

struct SelectedLevel {
  std::optional<Posterior<double>> fit;  ///< of the first fold at the selected level, if it was requested
  std::optional<double> squares;         ///< mean squared residual of held-out rows; nothing if one pass is better
};

/// Advances all folds level by level and selects the level with the smallest loss on held-out rows. Writes the level,
/// its losses and the row reads to `result`.
template <typename Scalar>
SelectedLevel select_level(const RefineContext<Scalar>& context, HeldOutFolds<Scalar>& folds,
                           const MultiPassSolverOptions& options, bool keeps_fit, RefineResult<Scalar>& result);

}  // namespace dyad
