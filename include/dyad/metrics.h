#pragma once

#include <dyad/data.h>

namespace dyad {

/// How good predictions were, in the units of the target. NaN: not measured.
struct Metrics {
  Task task = Task::regression;
  double weight = 0;  ///< of all rows: their number, unless they have weights

  double rmse = 0;
  double mae = 0;
  double r2 = 0;  ///< 1 - mean squared error / variance; 0 where the target is constant

  double logloss = 0;
  double auc = 0;  ///< from a histogram of the scores, exact to about 0.001; 0.5 where there is one class only
  double accuracy = 0;

  double of_best_constant = 0;  ///< the rmse or logloss of the best constant on the same rows
  double loss = 0;              ///< rmse or logloss, whichever belongs to the task
};

/// The name of Metrics::loss, such as "rmse".
const char* loss_name(Task task);

}  // namespace dyad
