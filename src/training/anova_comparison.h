#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "encoding/feature_map.h"
#include "training/state/anova_training.h"

namespace dyad {

/// Creates a solver without rows.
template <typename Scalar>
using MakeAnova = std::function<std::unique_ptr<AnovaTraining<Scalar>>()>;

/// Passes all rows with positive weight to the solver and fits them.
template <typename Scalar>
void fit_anova_rows(AnovaTraining<Scalar>& training, const Rows<Scalar>& rows);

/// Mean loss of ANOVA models on held-out rows. `fold_of`: the fold that holds out each row, in [0, folds), or another
/// number. One model is fitted per fold, to the rows that the fold does not hold out.
template <typename Scalar>
double held_out_anova_loss(const Rows<Scalar>& rows, std::span<const std::uint8_t> fold_of, Index folds,
                           const FeatureMap& map, const MakeAnova<Scalar>& make);

}  // namespace dyad
