#pragma once

#include "solvers/anova/term_fit.h"

namespace dyad {

/// Fits the variance of the noise as a function of the columns. If the leave-one-out loss of the fit with weights
/// v(x)^-1/2 is smaller, it replaces `result`.
void fit_noise(TermFit& fit, AnovaFit& result);

}  // namespace dyad
