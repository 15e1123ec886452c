#pragma once

#include <memory>
#include <vector>

#include "model/anova_model.h"
#include "solvers/anova/terms.h"

namespace dyad {

/// The model of fitted terms: axes, functions and posterior covariance. The caller sets the intercept, its variance and
/// the noise variance.
AnovaModel make_anova_model(const std::vector<std::unique_ptr<Term>>& terms, const TermSums& sums,
                            const VarianceFit& fit);

}  // namespace dyad
