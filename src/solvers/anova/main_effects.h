#pragma once

#include "solvers/anova/term_fit.h"

namespace dyad {

/// Adds the functions of single columns. Their prior has one variance per kernel and column, one variance per kernel
/// for all columns, or one variance for the weights of all columns without curves: the one with the largest
/// TermFit::score(). Many variances fit noise in tables of few rows.
void fit_main_effects(TermFit& fit);

}  // namespace dyad
