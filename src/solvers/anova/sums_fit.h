#pragma once

#include "solvers/anova/anova_fit.h"
#include "solvers/anova/basis/basis_sums.h"

namespace dyad {

/// Estimates the variances and the coefficients of the blocks of `model` from sums over rows, which need not be those
/// that the blocks were selected on. The posterior, the intercept and the noise variance follow from the sums; the
/// function of the noise stays that of `model`. Starts from the variances of `prior`.
AnovaFit fit_sums(const AnovaModel& model, const AnovaPrior& prior, const BasisSums& sums, const AnovaOptions& options);

/// Saves or loads the axes, the functions and the intercept.
void archive_functions(Archive& archive, AnovaFunctions& functions);

}  // namespace dyad
