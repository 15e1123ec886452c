#pragma once

#include <string>

#include <dyad/distributed.h>

#include "serialization/model_file.h"

namespace dyad {

/// The model from which workers start, for a model of the solver anova that was trained on some of the rows: its
/// functions and their prior, without rows.
std::string start_anova_workers(ModelFile file);

/// Estimates the coefficients and the variances of the functions of `file` from sums over the rows of all workers.
DistributedSummary train_anova_workers(ModelFile file, const DistributedOptions& options);

}  // namespace dyad
