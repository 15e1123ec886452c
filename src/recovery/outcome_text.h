#pragma once

#include <string>

#include <dyad/recover.h>

namespace dyad {

/// How the run ended in one line, and why where it did not converge.
std::string outcome_text(const RecoverOptions& options, const RecoverySummary& summary);

}  // namespace dyad
