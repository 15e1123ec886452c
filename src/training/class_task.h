#pragma once

#include <functional>
#include <string>
#include <vector>

#include <dyad/train.h>

#include "base/locked_file.h"

namespace dyad {

/// One binary problem of a model of more than two classes: a class against all others.
struct ClassTask {
  std::vector<std::string> labels;            ///< of all classes
  Index positive = 0;                         ///< index of the class
  std::function<bool(Index row)> uses_row{};  ///< rows of the training set, by number from 0; empty: all rows
};

/// train() without validation of the options. `task`: nullptr for regression and two classes. Targets of other classes
/// than two throw ThirdClassError then.
TrainSummary train_model(const TrainOptions& options, const TrainHooks& hooks, const ClassTask* task,
                         LockedFile& output);

}  // namespace dyad
