#pragma once

#include <dyad/recover.h>

#include <nlohmann/json.hpp>

namespace dyad::cli {

/// Output of `recover --theory`: for every batch the constants of the proof and its bounds beside the measured errors.
/// Problems with noise or a residual spectrum have additional columns for the noisy theorem.

void print_theory_heading(const RecoverOptions& options);
void print_theory_line(const RecoverOptions& options, const RecoveryPoint& point);

/// Explains the columns of the table and the largest rate of all batches.
void print_theory_summary(const RecoverOptions& options, const RecoverySummary& summary);

/// Fields of a point of the trace.
nlohmann::ordered_json theory_json(const RecoverOptions& options, const TheoryPoint& theory);

}  // namespace dyad::cli
