#pragma once

#include <string>

#include <dyad/recover.h>

// src/recovery: synthetic (planted) problems, their recovery by the solvers, and the constants of the paper's proof.

namespace dyad {

/// Rows of a batch of the moment solver, in units of rank times dimension. Each batch multiplies the error by about
/// sqrt((k + 2.5) d / n) (docs/paper.md), which is at most 0.76 for n = 6kd.
inline constexpr Index default_batch_rows_per_kd = 6;

/// Describes in one line how a run ended and, if it did not converge, the likely reason and what to change.
std::string outcome_text(const RecoverOptions& options, const RecoverySummary& summary);

}  // namespace dyad
