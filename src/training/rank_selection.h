#pragma once

#include "training/state/train_solver.h"

namespace dyad {

/// Whether select_rank() applies: sparse rows of a gfm that the filter learns in one pass.
template <typename Scalar>
bool can_select_rank(const TrainSettings& settings, const FeatureMap& map, const RowBlock<Scalar>& first);

/// Rank of the filter if the user gives none: 16, unless the losses of the first rows, which are predicted before
/// they are learned, are larger than with the rank of `options`, 8, by more than two standard errors of the difference.
/// Then 8.
template <typename Scalar>
Index select_rank(StreamOptions options, const Rows<Scalar>& first, const Target& target, ThreadPool& pool);

}  // namespace dyad
