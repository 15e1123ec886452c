#pragma once

#include <dyad/train.h>

#include "base/locked_file.h"

namespace dyad {

/// Whether train() needs train_classes() from the start: rows in memory with more than two labels, or a resumed model
/// of more than two classes.
bool is_several_classes(const TrainOptions& options);

/// Trains a model of more than two classes (ClassModels) and writes it to `output`, or to TrainSummary::model_bytes
/// without a path. The rows are read once to find the classes, and then once for each model. See train().
TrainSummary train_classes(const TrainOptions& options, const TrainHooks& hooks, LockedFile& output);

}  // namespace dyad
